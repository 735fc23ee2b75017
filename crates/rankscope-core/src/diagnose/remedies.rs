//! What lets a process be read that a rule forbids: exact commands, with this machine's own names.

use super::refusal::Rule;

/// Where rankscope runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub container: bool,
    pub pod: Option<Pod>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub namespace: String,
    pub container: Option<String>,
    pub node: Option<String>,
}

/// The best first; `pid` is the process.
pub fn remedies(rule: Rule, place: &Place, pid: u32) -> Vec<String> {
    let mut all = Vec::new();
    match rule {
        // The interpreter is at fault, and thread states are shown anyway.
        Rule::Unsupported => return all,
        Rule::NotPython => {
            all.push(format!(
                "give the pid of a Python process; to see them: `ps -e --forest | grep -B2 -A2 {pid}`"
            ));
            return all;
        }
        // No capability helps: a process may only read itself.
        Rule::PtraceScope(3..) => {
            all.push("in the training script: `import rankscope; rankscope.start(stacks=True)`: a process may always read itself".to_owned());
            return all;
        }
        Rule::PtraceScope(1) => {
            all.push("start the job under `rankscope run --stacks -- …`: an ancestor may read it".to_owned());
        }
        Rule::Uid => {
            all.push(format!("run rankscope as the user of process {pid}, or as root with CAP_SYS_PTRACE"))
        }
        _ => {}
    }
    match &place.pod {
        Some(pod) => all.extend(in_kubernetes(pod, pid)),
        None if place.container => {
            all.push(format!(
                "from the host: `docker exec --privileged CONTAINER rankscope diagnose --pid {pid}`"
            ));
            all.push("for the next start: `docker run --cap-add SYS_PTRACE …`".to_owned());
        }
        None => all.push(format!("`sudo rankscope diagnose --pid {pid}`")),
    }
    if rule == Rule::Seccomp {
        all.push("or a seccomp profile that allows process_vm_readv, such as the runtime's default since Linux 4.8".to_owned());
    }
    all
}

fn in_kubernetes(pod: &Pod, pid: u32) -> Vec<String> {
    let Pod { name, namespace, .. } = pod;
    let container = pod.container.as_deref().unwrap_or("CONTAINER");
    let node = pod.node.as_deref().unwrap_or("NODE");
    let debugger = format!("rankscope-{pid}");
    vec![
        format!(
            "`kubectl debug {name} -n {namespace} -c {debugger} --profile=general --target={container} --image=IMAGE -- rankscope diagnose --pid {pid}` (IMAGE: one that has rankscope and runs as root), then `kubectl logs {name} -n {namespace} -c {debugger} -f`"
        ),
        format!(
            "on node {node} as root: `PID=$(crictl inspect -o go-template --template '{{{{.info.pid}}}}' $(crictl ps -q --name {container} --label io.kubernetes.pod.name={name}))`, then `nsenter -t $PID -m -p -- rankscope diagnose --pid {pid}`"
        ),
        "for the next start, in the container's spec: `securityContext: {capabilities: {add: [SYS_PTRACE]}}`"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Place {
        let pod = Pod {
            name: "train-0".to_owned(),
            namespace: "ml".to_owned(),
            container: Some("trainer".to_owned()),
            node: None,
        };
        Place { container: true, pod: Some(pod) }
    }

    #[test]
    fn in_a_pod_with_its_names() {
        let all = remedies(Rule::PtraceScope(1), &pod(), 12).join("\n");
        assert!(all.starts_with("start the job under `rankscope run --stacks"));
        assert!(all.contains(
            "kubectl debug train-0 -n ml -c rankscope-12 --profile=general --target=trainer --image=IMAGE -- rankscope diagnose --pid 12"
        ));
        assert!(all.contains("kubectl logs train-0 -n ml -c rankscope-12"));
        assert!(all.contains("--template '{{.info.pid}}' $(crictl ps -q --name trainer"));
        assert!(all.contains("nsenter -t $PID -m -p -- rankscope diagnose --pid 12"));
        assert!(all.contains("add: [SYS_PTRACE]"));
    }

    #[test]
    fn no_remedy_that_would_not_help() {
        let all = remedies(Rule::PtraceScope(3), &pod(), 12);
        assert!(all.len() == 1 && all[0].contains("rankscope.start(stacks=True)"));
        assert!(remedies(Rule::Unsupported, &pod(), 12).is_empty());
        let scope2 = remedies(Rule::PtraceScope(2), &Place::default(), 12);
        assert_eq!(scope2, ["`sudo rankscope diagnose --pid 12`"]);
    }

    #[test]
    fn in_docker() {
        let all = remedies(Rule::NonDumpable, &Place { container: true, pod: None }, 7).join("\n");
        assert!(all.contains("--cap-add SYS_PTRACE") && all.contains("docker exec --privileged"));
    }
}
