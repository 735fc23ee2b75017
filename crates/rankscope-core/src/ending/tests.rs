use super::*;

fn oom(kills: u64, ago_ms: i64) -> OomCounts {
    let level = |level: &str, ooms| LevelOoms {
        level: level.into(),
        ooms: Some(ooms),
        hits: Some(3412),
        source: "memory.events".into(),
        binds: ooms > 0,
    };
    OomCounts {
        kills: Some(kills),
        last_kill_unix_ms: (kills > 0).then_some(100_000 - ago_ms),
        levels: vec![level("/pod/ctr", 0), level("/pod", kills)],
        ..OomCounts::default()
    }
}

fn end(exit: Exit) -> Evidence {
    Evidence { exit, ended_unix_ms: 100_000, oom: oom(0, 0), ..Evidence::default() }
}

fn signal(signal: i32) -> Exit {
    Exit::Signal { signal, core_dumped: false }
}

fn reason_of(seen: &Evidence) -> (Reason, Oom) {
    let ending = decide(seen);
    (ending.reason, ending.oom)
}

#[test]
fn a_worker_was_killed_and_the_launcher_lives_on() {
    let seen = Evidence { oom: oom(1, 5_000), ..end(Exit::Code(1)) };
    let ending = decide(&seen);
    assert_eq!((ending.reason, ending.oom), (Reason::OomKilled, Oom::Yes));
    assert_eq!(ending.exit_code, Some(1));
    assert!(
        ending.detail.contains("1 process was OOM-killed in this cgroup during the run"),
        "{}",
        ending.detail
    );
    assert_eq!(ending.oom_kills, OomKills { processes: Some(1), level: Some("/pod".into()) });

    let recovered = decide(&Evidence { exit: Exit::Code(0), ..seen.clone() });
    assert_eq!(recovered.reason.status(), Status::Finished);
    assert_eq!(recovered.warnings.len(), 1);

    let much_later = Evidence { oom: oom(1, 61_000), ..seen };
    let ending = decide(&much_later);
    assert_eq!(ending.reason, Reason::ExitCode);
    assert_eq!(ending.warnings.len(), 1);
}

#[test]
fn codes_and_signals_are_told_apart_without_guessing() {
    let seen = [
        (signal(9), Reason::Signal, "killed by SIGKILL, no OOM kill recorded"),
        (Exit::Code(137), Reason::Signal, "exit code 137: SIGKILL as a shell reports it"),
        (Exit::Code(9), Reason::ExitCode, "exit code 9"),
        (signal(15), Reason::Signal, "killed by SIGTERM"),
        (Exit::Signal { signal: 7, core_dumped: true }, Reason::Signal, "killed by SIGBUS, core dumped"),
        (Exit::Code(0), Reason::Completed, "ended with exit code 0"),
        (Exit::Code(255), Reason::ExitCode, "exit code 255"),
        (Exit::Code(247), Reason::ExitCode, "247 is also -9 (SIGKILL) in eight bits"),
        (Exit::Unseen, Reason::Lost, "no end was seen"),
    ];
    for (exit, reason, words) in seen {
        let ending = decide(&end(exit));
        assert_eq!((ending.reason, ending.oom), (reason, Oom::No), "{exit:?}");
        assert!(ending.detail.contains(words), "{}", ending.detail);
    }
}

#[test]
fn oom_is_not_oom_kill() {
    let mut met = oom(0, 0);
    met.levels[1].ooms = Some(5);
    met.levels[1].binds = true;
    let ending = decide(&Evidence { oom: met, ..end(signal(9)) });
    assert_eq!((ending.reason, ending.oom), (Reason::Signal, Oom::No));
    assert!(ending.detail.contains("was met 3412 times"), "{}", ending.detail);

    let nested = OomCounts { own_kills: Some(0), ..oom(1, 0) };
    let ending = decide(&Evidence { oom: nested, ..end(signal(9)) });
    assert_eq!(ending.oom, Oom::Yes);
    assert!(ending.detail.contains("in a cgroup below"), "{}", ending.detail);

    let old = OomCounts {
        kills: None,
        why_not: Some("this kernel has no OOM counter (Linux 4.13)".into()),
        levels: vec![LevelOoms {
            level: "/job".into(),
            ooms: None,
            hits: Some(8842),
            source: "memory.failcnt".into(),
            binds: true,
        }],
        ..OomCounts::default()
    };
    let ending = decide(&Evidence { oom: old, ..end(signal(9)) });
    assert_eq!((ending.reason, ending.oom), (Reason::Signal, Oom::CannotTell));
    assert!(ending.detail.contains("no OOM counter") && ending.detail.contains("hit 8842 times"));
    assert_eq!(ending.oom_kills, OomKills::default());
}

#[test]
fn the_level_of_a_kill() {
    assert_eq!(oom(1, 0).level(), "/pod");
    let far = OomCounts { levels: vec![], ..oom(1, 0) };
    assert_eq!(far.level(), "not_visible");
    assert_eq!(OomCounts { node_available_percentage: Some(1.2), ..far.clone() }.level(), "node");
    assert_eq!(OomCounts { node_available_percentage: Some(40.0), ..far }.level(), "not_visible");
    let v1 = |hits: [u64; 2]| {
        let mut counts = oom(1, 0);
        for (level, hits) in counts.levels.iter_mut().zip(hits) {
            (level.ooms, level.hits) = (None, Some(hits));
        }
        counts.level()
    };
    assert_eq!(v1([4, 0]), "/pod/ctr");
    assert_eq!(v1([4, 2]), "/pod", "the one that binds");
    assert_eq!(v1([0, 0]), "not_visible");
}

#[test]
fn a_request_to_end_comes_before_an_earlier_kill() {
    let asked = Asked { signal: 15, unix_ms: 98_000, sender: None, sender_name: None, time_limit: None };
    let seen = Evidence { asked: Some(asked), oom: oom(2, 30_000), ..end(Exit::Code(143)) };
    let ending = decide(&seen);
    assert_eq!(ending.reason, Reason::Terminated);
    assert_eq!(ending.reason.status(), Status::Killed);
    assert!(ending.detail.contains("2.0 s later") && ending.warnings.len() == 1, "{ending:?}");
    // The OOM killer came first all the same.
    assert_eq!(decide(&Evidence { exit: signal(9), ..seen.clone() }).reason, Reason::OomKilled);
    assert_eq!(decide(&Evidence { exit: Exit::Code(0), ..seen }).reason, Reason::Completed);
}

#[test]
fn a_bus_error_and_a_full_shm() {
    let full = |exit, share| Evidence { shm_percentage: Some(share), ..end(exit) };
    assert_eq!(decide(&full(signal(7), 99.6)).reason, Reason::ShmFull);
    assert_eq!(decide(&full(Exit::Code(135), 100.0)).reason, Reason::ShmFull);
    assert_eq!(decide(&full(signal(7), 60.0)).reason, Reason::Signal);
    assert_eq!(decide(&full(Exit::Code(1), 100.0)).reason, Reason::ExitCode);
    let words = "DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's workers \
                 are out of shared memory.";
    let traceback = Some(Traceback::new("RuntimeError", words, None, "--tee"));
    assert_eq!(
        decide(&Evidence { traceback: traceback.clone(), ..full(Exit::Code(1), 100.0) }).reason,
        Reason::ShmFull
    );
    let roomy = Evidence { traceback, ..full(Exit::Code(1), 10.0) };
    assert_eq!(decide(&roomy).reason, Reason::PythonException);
}

#[test]
fn tracebacks() {
    let text = "step 7\nTraceback (most recent call last):\n  File \"/srv/app/train.py\", line 12, in main\n    step()\n    \
                ~~~~^^\n  File \"/srv/app/model.py\", line 3, in step\n    raise KeyError(x)\nKeyError: 'token=abc'\n\
                \nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call \
                last):\n  File \"/srv/app/train.py\", line 14, in <module>\n    main()\ntorch.OutOfMemoryError: CUDA out \
                of memory. Tried to allocate 2.00 GiB.\n";
    let found = Traceback::last_in(text, "--tee").unwrap();
    assert_eq!(found.exception, "torch.OutOfMemoryError");
    assert_eq!(found.place.as_deref(), Some("train.py:14 in <module>"));
    assert!(found.is_cuda_oom);
    assert_eq!(found.tried_to_allocate.as_deref(), Some("2 GiB"));
    let seen = Evidence { traceback: Some(found), ..end(Exit::Code(1)) };
    assert_eq!(reason_of(&seen), (Reason::CudaOom, Oom::No));

    let first = Traceback::last_in(&text[..text.find("\nDuring").unwrap()], "--tee").unwrap();
    assert_eq!((first.exception.as_str(), first.place.as_deref()), ("KeyError", Some("model.py:3 in step")));
    let ending = decide(&Evidence { traceback: Some(first), ..end(Exit::Code(1)) });
    assert_eq!(ending.reason, Reason::PythonException);
    assert!(!serde_json::to_string(&ending).unwrap().contains("token"), "a message may hold a secret");

    let of_rank = "[rank0]:Traceback (most recent call last):\n[rank0]:  File \"a.py\", line 1, in f\n[rank0]:    x\n\
                   [rank0]:ValueError: no\n";
    assert_eq!(Traceback::last_in(of_rank, "--tee").unwrap().exception, "ValueError");
    assert!(Traceback::last_in("Traceback (most recent call last):\n  File \"a", "--tee").is_none());
    assert!(Traceback::last_in("all went well", "--tee").is_none());
    assert!(!Traceback::new("MemoryError", "", None, "x").is_cuda_oom);
}

#[test]
fn an_ending_survives_being_stored() {
    let ending = decide(&Evidence { oom: oom(1, 0), ..end(signal(9)) });
    let json = serde_json::to_string(&ending).unwrap();
    assert_eq!(serde_json::from_str::<Ending>(&json).unwrap(), ending);
    assert!(json.contains("\"reason\":\"oom_killed\"") && json.contains("\"oom\":\"yes\""));
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_odd_for_a_traceback(text in "(Traceback \\(most recent call last\\):|  File \"|\", line |, in |\n|: |\\PC|[a-zA-Z.])*") {
        let _ = Traceback::last_in(&text, "--tee");
    }
}

#[test]
fn an_end_whose_code_is_hidden_is_called_a_kill_only_with_evidence() {
    let ending = decide(&end(Exit::Hidden));
    assert_eq!((ending.reason, ending.oom, ending.exit_code), (Reason::Lost, Oom::No, None));
    assert!(ending.detail.starts_with("ended; its exit code is not visible"), "{}", ending.detail);
    let ending = decide(&Evidence { oom: oom(1, 5_000), ..end(Exit::Hidden) });
    assert_eq!((ending.reason, ending.oom), (Reason::OomKilled, Oom::Yes));
    assert_eq!(decide(&Evidence { oom: oom(1, 61_000), ..end(Exit::Hidden) }).reason, Reason::Lost);
}
