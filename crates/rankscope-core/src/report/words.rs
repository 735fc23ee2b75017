//! Every text of the page itself, in English and in Korean. `{name}` is filled in. Sentences that others made, which are
//! also what the terminal and the run's tags say, are in `korean`.

use super::causes::CAUSES;

/// Key, English, Korean.
pub static WORDS: &[[&str; 3]] = &[
    [
        "no_scripts",
        "Charts need JavaScript, which is off here; verdict and times stand above.",
        "차트를 보려면 JavaScript가 필요합니다. 판정과 시각은 위에 있습니다.",
    ],
    ["theme", "Dark or light", "어둡게/밝게"],
    ["language", "한국어", "English"],
    // The verdict.
    ["reason_open", "running", "실행 중"],
    ["reason_completed", "completed", "정상 완료"],
    ["reason_oom_killed", "OOM-killed", "메모리 부족으로 강제 종료(OOM)"],
    ["reason_terminated", "ended on request", "요청으로 종료"],
    ["reason_shm_full", "/dev/shm full", "/dev/shm 가득 참"],
    ["reason_cuda_oom", "GPU memory full", "GPU 메모리 부족"],
    ["reason_python_exception", "Python exception", "Python 예외"],
    ["reason_signal", "killed by a signal", "시그널로 종료"],
    ["reason_exit_code", "failed", "실패"],
    ["reason_lost", "lost", "종료 기록 없음"],
    ["badge_cause", "main cause: {name}", "주원인: {name}"],
    ["badge_healthy", "healthy", "정상"],
    ["badge_cannot_tell", "can't tell", "판단 불가"],
    ["slow_because", "Slow because", "느린 이유:"],
    [
        "slow_beside",
        "main cause `{cause}`, confidence {confidence}, by the last {looked} of the record",
        "주원인 `{cause}`, 신뢰도 {confidence}, 기록의 마지막 {looked} 기준",
    ],
    ["started_at", "started {time}", "시작 {time}"],
    ["looked_from", "looked at from {time}", "관찰 시작 {time}"],
    ["job", "job {name}", "작업 {name}"],
    ["run", "MLflow run {name}", "MLflow 실행 {name}"],
    ["try", "Try", "해 볼 것"],
    ["course", "Course", "경과"],
    ["evidence", "Evidence", "근거"],
    ["then", "Others that failed after it", "뒤이어 실패한 랭크"],
    ["rank_n", "rank {n}", "랭크 {n}"],
    // Facts.
    ["fact_duration", "ran for", "실행 시간"],
    ["fact_window", "looked at for", "관찰 시간"],
    ["fact_gpu_lost", "GPU time without work", "작업 없는 GPU 시간"],
    ["fact_confidence", "confidence", "신뢰도"],
    ["fact_memory", "memory peak", "메모리 최댓값"],
    ["fact_cpu", "CPU, 95 % of the time below", "CPU, 시간의 95 %에서 이하"],
    ["fact_short_memory", "memory", "메모리"],
    ["fact_short_cpu", "CPU", "CPU"],
    ["fact_short_gpu", "GPU", "GPU"],
    ["level", "level {level}", "수준 {level}"],
    ["fact_ranks", "ranks", "랭크 수"],
    ["of_limit", "of {limit} ({share} %)", "한도 {limit} 중 ({share} %)"],
    ["no_limit", "no limit visible", "보이는 한도 없음"],
    ["of_cores", "of {limit} cores", "한도 {limit}코어 중"],
    ["cores_n", "{n} cores", "{n}코어"],
    ["highest_of", "rank {rank}, the highest of {n}", "{n}개 랭크 중 최고인 랭크 {rank}"],
    ["sizing", "Right size", "알맞은 크기"],
    [
        "sizing_memory",
        "memory {enough}: the peak of {peak} and {margin} %",
        "메모리 {enough}: 최댓값 {peak}에 {margin} % 여유",
    ],
    [
        "sizing_cut",
        "memory {enough} or more: the peak of {peak} and {margin} %; the kill cut it off",
        "메모리 {enough} 이상: 최댓값 {peak}에 {margin} % 여유. 강제 종료로 최댓값이 잘렸을 수 있음",
    ],
    [
        "sizing_cpu",
        "CPU {enough}: 95 % of the time below {p95} cores (means of {row}), and 15 %",
        "CPU {enough}코어: 시간의 95 %에서 {p95}코어 이하({row} 평균), 15 % 여유",
    ],
    // The toolbar.
    ["range", "Time", "구간"],
    ["range_all", "whole", "전체"],
    ["range_hour", "last hour", "마지막 1시간"],
    ["range_tail", "last 10 min", "마지막 10분"],
    ["range_reset", "zoomed: back to the whole", "확대됨: 전체로"],
    ["rank", "Rank", "랭크"],
    ["at", "at {time}", "{time}"],
    ["at_step", "step {step}", "스텝 {step}"],
    ["at_epoch", "epoch {epoch}", "에폭 {epoch}"],
    ["of", "{value} of {limit}", "{limit} 중 {value}"],
    ["after_start", "{time} after the start", "시작 후 {time}"],
    [
        "hint",
        "Point at a chart, or focus one and use ← → (Shift: ten points, Home, End). Drag to zoom.",
        "차트 위를 가리키거나, 차트에 포커스를 두고 ← → 키를 쓰세요(Shift: 10점, Home, End). 끌면 확대됩니다.",
    ],
    ["all_ranks", "All ranks", "모든 랭크"],
    ["steps", "steps and epochs", "스텝과 에폭"],
    ["missing_value", "no value", "값 없음"],
    ["training", "Training", "학습"],
    ["resources", "What this job used", "이 작업이 사용한 자원"],
    ["node_title", "The node, shared with others", "노드 (다른 작업과 공유)"],
    [
        "node_note",
        "Not this job's alone: every process of the machine counts here.",
        "이 작업만의 값이 아닙니다. 노드의 모든 프로세스가 포함됩니다.",
    ],
    ["table", "Values as a table", "표로 보기"],
    ["time", "time (UTC)", "시각(UTC)"],
    ["step", "step", "스텝"],
    [
        "band_note",
        "each point is {tier}; the band goes from minimum to maximum",
        "점 하나는 {tier}; 띠는 최솟값~최댓값",
    ],
    ["one_ticks", "one sample", "샘플 하나"],
    ["one_windows", "one window of {n}", "{n} 구간 하나"],
    ["one_rollups", "{n}", "{n}"],
    ["one_run", "one point of the run", "실행 기록의 점 하나"],
    ["many_ticks", "the samples of {n}", "{n} 동안의 샘플"],
    ["many_windows", "the windows of {n}", "{n} 동안의 구간"],
    ["many_rollups", "the 5-minute means of {n}", "{n} 동안의 5분 평균"],
    ["many_run", "the run's points of {n}", "{n} 동안의 실행 기록"],
    ["shared_by", "shared by ranks {ranks}", "랭크 {ranks} 공유"],
    ["limit_at", "limit set at {level}", "한도 위치 {level}"],
    ["limit_above", "limit {limit} lies above this chart", "한도 {limit}는 차트 위쪽에 있음"],
    // Marks.
    ["mark_oom", "OOM kill", "OOM 종료"],
    ["mark_near", "near the limit", "한도 근접"],
    ["mark_stall", "stall", "정체"],
    ["mark_gpu", "GPU event", "GPU 이벤트"],
    ["mark_end", "end", "종료"],
    // Charts.
    ["chart_memory", "Memory against the limit", "메모리와 한도"],
    ["chart_cpu", "CPU against the limit", "CPU와 한도"],
    ["chart_cpu_waits", "CPU: throttled and waiting", "CPU 스로틀링과 대기"],
    ["chart_gpu_utilization", "GPU utilisation", "GPU 사용률"],
    ["chart_gpu_power", "GPU power", "GPU 전력"],
    ["chart_gpu_memory", "GPU memory", "GPU 메모리"],
    ["chart_main_thread", "Main thread", "메인 스레드"],
    ["chart_process_memory", "Memory of the rank's processes", "랭크 프로세스의 메모리"],
    ["chart_network", "Network of the pod", "파드 네트워크"],
    ["chart_disk", "Reads and writes", "읽기와 쓰기"],
    ["chart_file_systems", "File systems", "파일 시스템"],
    ["chart_stalls", "Everything waited", "전체 대기"],
    ["chart_processes", "Processes and threads", "프로세스와 스레드"],
    ["chart_node_memory", "Memory of the node", "노드 메모리"],
    ["chart_node_cpu", "CPU of the node", "노드 CPU"],
    ["chart_node_pressure", "Waits on the node", "노드의 대기"],
    ["chart_node_network", "Network of the node", "노드 네트워크"],
    ["chart_node_disk", "Disks of the node", "노드 디스크"],
    // Lines.
    ["line_anon", "anon (heaps, tensors)", "anon (힙, 텐서)"],
    ["line_shmem", "shared memory, /dev/shm", "공유 메모리, /dev/shm"],
    ["line_cache", "page cache", "페이지 캐시"],
    ["line_held", "counts against the limit", "한도에 계산되는 양"],
    ["line_held_own", "working set of this container", "이 컨테이너의 워킹 셋"],
    ["line_limit", "limit", "한도"],
    ["line_container", "container", "컨테이너"],
    ["line_processes", "this rank's processes", "이 랭크의 프로세스"],
    ["line_throttled", "quota periods throttled", "스로틀된 쿼터 주기"],
    ["line_waited", "time in which a task waited for a CPU", "CPU를 기다린 시간"],
    ["line_gpu", "GPU", "GPU"],
    ["line_on_cpu", "on a CPU", "CPU에서 실행"],
    ["line_run_delay", "wanted a CPU and had none", "CPU를 얻지 못하고 대기"],
    ["line_board", "board of GPU", "보드, GPU"],
    ["line_rss", "RSS, shared pages counted in each process", "RSS (공유 페이지는 중복 계산)"],
    ["line_pss", "PSS", "PSS"],
    ["line_receive", "received", "수신"],
    ["line_transmit", "sent", "송신"],
    ["line_rdma_receive", "RDMA received", "RDMA 수신"],
    ["line_rdma_transmit", "RDMA sent", "RDMA 송신"],
    ["line_read_calls", "read calls (cache and network file systems too)", "읽기 호출(캐시·네트워크 포함)"],
    ["line_write_calls", "write calls", "쓰기 호출"],
    ["line_disk_read", "read from disks", "디스크 읽기"],
    ["line_disk_write", "written to disks", "디스크 쓰기"],
    ["line_rootfs", "under /", "/ 아래"],
    ["line_mount", "mount", "마운트"],
    ["line_for_memory", "for memory", "메모리 대기"],
    ["line_for_io", "for I/O", "I/O 대기"],
    ["line_for_cpu", "for a CPU", "CPU 대기"],
    ["line_count", "processes", "프로세스"],
    ["line_threads", "threads", "스레드"],
    ["line_tasks", "tasks of the container", "컨테이너의 태스크"],
    ["line_used", "not available to new work", "새 작업이 쓸 수 없는 양"],
    ["line_busy", "busy", "사용 중"],
    ["line_iowait", "idle, waiting for I/O", "I/O 대기 유휴"],
    // Scopes.
    ["scope_node", "node", "노드"],
    ["scope_container", "container", "컨테이너"],
    ["scope_pod", "pod", "파드"],
    ["scope_rootfs", "disk under /", "/ 디스크"],
    ["scope_mount", "mount", "마운트"],
    ["scope_gpu", "GPU", "GPU"],
    ["scope_process", "processes", "프로세스"],
    // Units that are words.
    ["unit_cores", "cores", "코어"],
    ["unit_processes", "processes", "개"],
    ["unit_threads", "threads", "개"],
    ["unit_tasks", "tasks", "개"],
    ["unit_events", "events", "회"],
    ["unit_errors", "errors", "건"],
    ["unit_steps", "steps", "스텝"],
    ["unit_epochs", "epochs", "에폭"],
    // Tables.
    ["measured", "What these numbers measure", "이 숫자들이 측정하는 것"],
    [
        "measured_note",
        "File, cgroup level and identity of what rank {n} measured. Two values with one identity are the same thing.",
        "랭크 {n}이(가) 측정한 값의 파일, cgroup 수준, 식별자입니다. 식별자가 같으면 같은 대상입니다.",
    ],
    ["missing", "What is missing, and why", "없는 값과 그 이유"],
    ["series", "series", "시리즈"],
    ["meaning", "meaning", "의미"],
    ["read_from", "read from", "읽은 곳"],
    ["identity", "identity", "식별자"],
    ["reason", "reason", "이유"],
    ["events", "Events", "이벤트"],
    ["what", "what", "내용"],
    ["value", "value", "값"],
    // Phases of a GPU.
    ["fact_gpu_busy", "GPU busy", "GPU 작업 중"],
    ["mean_of_gpus", "mean of {n} GPUs", "GPU {n}개 평균"],
    ["phases_told", "GPU {gpu}: {shares}", "GPU {gpu}: {shares}"],
    [
        "phases_row",
        "shares of the whole time, told from means of {row}: what is shorter is not seen",
        "전체 시간 중 비율이며 {row} 평균으로 판단합니다. 더 짧은 구간은 보이지 않습니다",
    ],
    ["marked", "marked", "표시한 단계"],
    ["phase_idle", "idle", "유휴"],
    ["phase_busy", "busy", "작업 중"],
    ["phase_collective_wait", "waits for other ranks", "다른 랭크 대기"],
    ["phase_low_power", "low power", "저전력"],
    ["phase_unknown", "unknown", "알 수 없음"],
    // Tables of a diagnosis.
    ["ladder", "Step by step", "단계별 확인"],
    ["hypotheses", "Causes that were weighed", "검토한 원인"],
    ["ruled_out", "Ruled out", "배제한 원인"],
    ["remedies", "What helps", "해결 방법"],
    ["top_stacks", "Where it stood while the GPU was idle", "GPU 유휴 시간의 스택"],
    ["not_seen", "What is missing", "보지 못한 것"],
    ["cause", "cause", "원인"],
    ["status", "status", "상태"],
    ["do", "do", "할 일"],
    ["helps", "why it helps", "효과가 있는 이유"],
    ["does_not_help", "does not help", "효과가 없는 것"],
    ["changes_results", "changes in the results", "결과의 변화"],
    ["gain", "gain", "예상 이득"],
    ["shown_by", "evidence", "근거"],
    ["idle_weight", "of the idle time", "유휴 시간 비중"],
    ["thread", "thread", "스레드"],
    ["frames", "frames, innermost first", "프레임 (안쪽부터)"],
    ["remedy", "what would help", "해결 방법"],
    ["remarks", "About this page", "이 페이지에 대하여"],
    [
        "made_by",
        "Made by rankscope {version} from {source}. Nothing is loaded from anywhere.",
        "rankscope {version}이(가) {source}에서 만들었습니다. 외부에서 불러오는 것은 없습니다.",
    ],
];

/// In English, filled in.
pub fn english(key: &str, arguments: &[(&str, &str)]) -> String {
    let text = WORDS.iter().chain(CAUSES).find(|row| row[0] == key).map_or(key, |row| row[1]);
    arguments.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// `{names}` of a text.
    fn holes(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
    }

    #[test]
    fn each_key_is_there_once_and_both_languages_are_filled_in_alike() {
        let mut seen = BTreeSet::new();
        for [key, english, korean] in WORDS.iter().chain(CAUSES) {
            assert!(seen.insert(key), "{key} twice");
            assert!(!english.is_empty() && !korean.is_empty(), "{key}");
            assert_eq!(holes(english), holes(korean), "{key}");
        }
    }
}
