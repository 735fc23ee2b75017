//! Verdict, course and advice: what `postmortem` says, the events of a record, and what a page says of itself.

use super::Pair;

pub const PAIRS: &[Pair] = &[
    // The verdict.
    ["rank {rank:w}: {Verdict}", "랭크 {rank}: {Verdict}"],
    [
        "was running when it was watched last, at {time}; its end is not in this record",
        "{time}에 마지막으로 관찰했을 때 실행 중이었습니다. 종료는 이 기록에 없습니다",
    ],
    ["still running; last sign of life at {time}", "아직 실행 중입니다. 마지막 기록은 {time}입니다"],
    ["completed at {time:w} UTC: {Detail}", "{time} UTC에 정상적으로 완료되었습니다. {Detail}"],
    [
        "OOM-killed at {time:w} UTC: {Detail}",
        "{time} UTC에 메모리 부족(OOM)으로 강제 종료되었습니다. {Detail}",
    ],
    ["ended on request at {time:w} UTC: {Detail}", "{time} UTC에 요청을 받고 종료되었습니다. {Detail}"],
    [
        "died of a full /dev/shm at {time:w} UTC: {Detail}",
        "{time} UTC에 /dev/shm이 가득 차서 종료되었습니다. {Detail}",
    ],
    [
        "out of GPU memory at {time:w} UTC: {Detail}",
        "{time} UTC에 GPU 메모리가 부족해 종료되었습니다. {Detail}",
    ],
    [
        "ended by a Python exception at {time:w} UTC: {Detail}",
        "{time} UTC에 Python 예외로 종료되었습니다. {Detail}",
    ],
    ["killed by a signal at {time:w} UTC: {Detail}", "{time} UTC에 시그널로 종료되었습니다. {Detail}"],
    ["failed at {time:w} UTC: {Detail}", "{time} UTC에 실패했습니다. {Detail}"],
    ["lost at {time:w} UTC: {Detail}", "{time} UTC 이후의 기록이 없습니다. {Detail}"],
    [
        "the node itself ran out of memory, not this container's limit",
        "이 컨테이너의 한도가 아니라 노드 자체의 메모리가 바닥났습니다",
    ],
    ["a limit that is not visible from here was met", "여기서 보이지 않는 한도에 도달했습니다"],
    ["this container reached its limit of {size}", "이 컨테이너가 한도 {size}에 도달했습니다"],
    ["this container reached its limit", "이 컨테이너가 한도에 도달했습니다"],
    ["{level:w} reached its limit of {size}", "{level}의 메모리가 한도 {size}에 도달했습니다"],
    ["{level:w} reached its limit", "{level}의 메모리가 한도에 도달했습니다"],
    [
        "shmem (files in /dev/shm and shared mappings) grew {size} a minute",
        "shmem(/dev/shm의 파일과 공유 매핑)이 분당 {size} 늘었습니다",
    ],
    ["anon grew {size} a minute", "anon이 분당 {size} 늘었습니다"],
    ["file grew {size} a minute", "file이 분당 {size} 늘었습니다"],
    [
        "`{program}` grew {size} a minute in {kind:w}",
        "`{program}` 프로세스의 {kind} 메모리가 분당 {size} 늘었습니다",
    ],
    [
        "`{program}` ×{n:w} grew {size} a minute in {kind:w}",
        "`{program}` 프로세스 {n}개의 {kind} 메모리가 분당 {size} 늘었습니다",
    ],
    ["`{program}` stayed at {size}", "`{program}` 프로세스는 {size}를 유지했습니다"],
    ["`{program}` ×{n:w} stayed at {size}", "`{program}` 프로세스 {n}개는 {size}를 유지했습니다"],
    ["{Killed} killed", "{Killed} 강제 종료되었습니다"],
    // The course.
    ["started", "시작"],
    ["last sample: {Memory}", "마지막 샘플: {Memory}"],
    ["{share:w} % of the limit: {Memory}", "한도의 {share} %: {Memory}"],
    ["end: completed", "종료: 정상 완료"],
    ["end: oom_killed", "종료: 메모리 부족(OOM)"],
    ["end: terminated", "종료: 요청으로 종료"],
    ["end: shm_full", "종료: /dev/shm 가득 참"],
    ["end: cuda_oom", "종료: GPU 메모리 부족"],
    ["end: python_exception", "종료: Python 예외"],
    ["end: signal", "종료: 시그널"],
    ["end: exit_code", "종료: 실패(종료 코드)"],
    ["end: lost", "종료: 종료 기록 없음"],
    ["{used} of {limit} (anon {kinds})", "{limit} 중 {used} (anon {kinds})"],
    ["{used} of {limit} (shmem {kinds})", "{limit} 중 {used} (shmem {kinds})"],
    ["{used} of {limit} (file {kinds})", "{limit} 중 {used} (file {kinds})"],
    ["{n:w} {unit:w} of {m:w} {units:w} ({share:w} %)", "{m} {units} 중 {n} {unit} ({share} %)"],
    ["{n:w} {unit:w} of {m:w} {units:w}", "{m} {units} 중 {n} {unit}"],
    ["{n:w} MiB", "{n} MiB"],
    ["{n:w} GiB", "{n} GiB"],
    ["{n:w} TiB", "{n} TiB"],
    ["{n:w} MiB (anon {kinds})", "{n} MiB (anon {kinds})"],
    ["{n:w} GiB (anon {kinds})", "{n} GiB (anon {kinds})"],
    ["{n:w} TiB (anon {kinds})", "{n} TiB (anon {kinds})"],
    // Events.
    [
        "near the limit: {held} of {limit} held at {level:w}, about {seconds:w} s to it",
        "한도 근접: {level}에서 {limit} 중 {held} 사용, 한도까지 약 {seconds} s",
    ],
    ["near the limit: {held} of {limit} held at {level:w}", "한도 근접: {level}에서 {limit} 중 {held} 사용"],
    [
        "near the limit: {held} of {limit} held, about {seconds:w} s to it",
        "한도 근접: {limit} 중 {held} 사용, 한도까지 약 {seconds} s",
    ],
    ["near the limit: {held} of {limit} held", "한도 근접: {limit} 중 {held} 사용"],
    [
        "calm again: {held} of {limit} held at {level:w}",
        "다시 여유가 생김: {level}에서 {limit} 중 {held} 사용",
    ],
    ["calm again: {held} of {limit} held", "다시 여유가 생김: {limit} 중 {held} 사용"],
    ["slowed down at memory.high at {level:w}", "{level}의 memory.high에서 느려졌습니다"],
    ["slowed down at memory.high", "memory.high에서 느려졌습니다"],
    [
        "every task waited for memory: the kernel reclaims what the job reads again",
        "모든 태스크가 메모리를 기다렸습니다. 작업이 다시 읽는 페이지를 커널이 회수하고 있습니다",
    ],
    ["the limit of {level:w}: {Counts}", "{level}의 한도: {Counts}"],
    ["{First}, {More}", "{First}, {More}"],
    ["{n:w} times met", "도달 {n}번"],
    ["{n:w} times slowed down", "감속 {n}번"],
    ["{n:w} times out of memory", "메모리 부족 {n}번"],
    ["{n:w} processes OOM-killed", "OOM으로 강제 종료된 프로세스 {n}개"],
    ["gpu lost", "GPU가 연결에서 사라졌습니다"],
    ["gpu xid", "GPU Xid 오류"],
    ["gpu ecc", "GPU ECC 오류"],
    ["gpu driver", "GPU 드라이버 오류"],
    ["watch ended", "관찰이 끝났습니다"],
    ["stacks refused", "스택 읽기가 거부되었습니다"],
    ["GPU {gpu:w} stopped: {why}", "GPU {gpu}이(가) 멈췄습니다: {why}"],
    ["GPU {gpu:w}: the driver reports Xid {xid:w}", "GPU {gpu}: 드라이버가 Xid {xid}를 알렸습니다"],
    [
        "GPU {gpu:w}: {n:w} memory errors that could not be corrected",
        "GPU {gpu}: 정정할 수 없는 메모리 오류가 {n}건 있습니다",
    ],
    // What would have been enough.
    [
        "no limit would have been enough for long: memory grew steadily, {size} a minute over {n:w} minutes",
        "어떤 한도로도 오래 버틸 수 없었습니다. 메모리가 {n}분 동안 분당 {size}씩 꾸준히 늘었습니다",
    ],
    [
        "at least {enough}: the peak of {peak} and a quarter; the kill cut it off, so it may need more",
        "최소 {enough}: 최댓값 {peak}에 4분의 1을 더한 값입니다. 강제 종료로 최댓값이 잘렸으므로 더 필요할 수 있습니다",
    ],
    [
        "memory was not short: peak {peak} of {limit}; {enough} would do (15 % above the peak)",
        "메모리는 부족하지 않았습니다. 최댓값은 {limit} 중 {peak}이며, {enough}이면 충분합니다(최댓값보다 15 % 많음)",
    ],
    // Advice.
    [
        "who asked: look at the scheduler's events (preemption, node drain, time limit, scancel, kubectl delete)",
        "누가 요청했는지 스케줄러의 이벤트를 확인하세요(선점, 노드 드레인, 시간 제한, scancel, kubectl delete)",
    ],
    [
        "save a checkpoint on SIGTERM, and give it enough grace (terminationGracePeriodSeconds, --signal)",
        "SIGTERM을 받으면 체크포인트를 저장하고, 유예 시간을 충분히 주세요(terminationGracePeriodSeconds, --signal)",
    ],
    [
        "make /dev/shm larger (Kubernetes: an emptyDir with medium: Memory at /dev/shm; Docker: --shm-size)",
        "/dev/shm을 늘리세요(Kubernetes: /dev/shm에 medium: Memory인 emptyDir, Docker: --shm-size)",
    ],
    [
        "or use fewer loader workers, a smaller prefetch_factor, or torch.multiprocessing's file_system sharing",
        "또는 로더 워커 수나 prefetch_factor를 줄이거나, torch.multiprocessing의 file_system 공유를 쓰세요",
    ],
    [
        "a smaller batch, gradient accumulation or checkpointing; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against fragmentation",
        "배치를 줄이거나 gradient accumulation 또는 checkpointing을 쓰세요. 단편화에는 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True가 도움이 됩니다",
    ],
    ["the traceback is in the job's own output", "트레이스백은 작업의 출력에 있습니다"],
    [
        "ask who can see it: `dmesg -T | grep -i oom` on the node, `kubectl describe pod`, the scheduler's log",
        "볼 수 있는 곳에서 확인하세요: 노드에서 `dmesg -T | grep -i oom`, `kubectl describe pod`, 스케줄러의 로그",
    ],
    [
        "somebody sent SIGKILL: look at the scheduler's events (grace period over, node drain, liveness probe, a time limit), or at who else may signal the job",
        "누군가 SIGKILL을 보냈습니다. 스케줄러의 이벤트(유예 시간 초과, 노드 드레인, liveness probe, 시간 제한)나 작업에 시그널을 보낼 수 있는 다른 주체를 확인하세요",
    ],
    [
        "PYTHONFAULTHANDLER=1 prints the Python stack at the next crash",
        "PYTHONFAULTHANDLER=1을 설정하면 다음 비정상 종료 때 Python 스택이 출력됩니다",
    ],
    [
        "ask who can see it: `kubectl describe pod`, `dmesg -T | grep -i oom` on the node, the scheduler's log",
        "볼 수 있는 곳에서 확인하세요: `kubectl describe pod`, 노드에서 `dmesg -T | grep -i oom`, 스케줄러의 로그",
    ],
    [
        "keep the record on a volume that outlives the container (--store), so that its last second is there",
        "컨테이너보다 오래 남는 볼륨에 기록을 두세요(--store). 그러면 마지막 1초까지 남습니다",
    ],
    [
        "--tee finds a Python traceback in what the job writes to stderr",
        "--tee를 쓰면 작업의 stderr에서 Python 트레이스백을 찾습니다",
    ],
    [
        "other jobs on the node used it up: ask for a memory request that equals the limit",
        "노드의 다른 작업이 메모리를 다 썼습니다. 메모리 request를 limit과 같게 요청하세요",
    ],
    [
        "`{program}` fills shared memory (/dev/shm counts against the limit): fewer workers, a smaller prefetch_factor, smaller batches to hand over",
        "`{program}` 프로세스가 공유 메모리를 채웁니다(/dev/shm도 한도에 계산됩니다). 워커 수, prefetch_factor, 넘겨주는 배치를 줄이세요",
    ],
    [
        "shared memory grew (/dev/shm counts against the limit): fewer loader workers, a smaller prefetch_factor",
        "공유 메모리가 늘었습니다(/dev/shm도 한도에 계산됩니다). 로더 워커 수나 prefetch_factor를 줄이세요",
    ],
    [
        "{n:w} processes of `{program}` grew together: fewer workers, or data that they share instead of copy (NumPy arrays instead of lists of Python objects)",
        "`{program}` 프로세스 {n}개가 함께 늘었습니다. 워커 수를 줄이거나, 데이터를 복사하지 않고 공유하게 하세요(Python 객체 리스트 대신 NumPy 배열)",
    ],
    [
        "a smaller batch, fewer loader workers, or less that is kept in lists and caches",
        "배치나 로더 워커 수를 줄이거나, 리스트와 캐시에 쌓아 두는 것을 줄이세요",
    ],
    [
        "look for what is kept from step to step: losses with their graph (use .item()), growing lists, a cache without a bound",
        "스텝마다 쌓이는 것을 찾으세요: 그래프가 붙은 loss(.item()을 쓰세요), 계속 커지는 리스트, 크기 제한이 없는 캐시",
    ],
    // About the page.
    [
        "{n:w} records: only the most important series of each are shown",
        "기록이 {n}개이므로 각각 가장 중요한 시리즈만 표시합니다",
    ],
    [
        "the records of {n:w} other ranks are not here; `rankscope report RUN_ID` takes them from the run",
        "다른 랭크 {n}개의 기록은 여기에 없습니다. `rankscope report RUN_ID`는 MLflow 실행에서 가져옵니다",
    ],
    [
        "why it is slow was not looked at, as there are more than {n:w} records; `rankscope diagnose --run DIR` does",
        "기록이 {n}개를 넘어 느린 이유는 확인하지 않았습니다. `rankscope diagnose --run DIR`로 확인하세요",
    ],
    [
        "rank {rank:w} changed its phase more than {n:w} times: phases are not drawn",
        "랭크 {rank}의 단계가 {n}번 넘게 바뀌어 단계를 그리지 않습니다",
    ],
    [
        "{n:w} nodes: which rank was on which is not in the run, so none is shown",
        "노드가 {n}개이며, 어느 랭크가 어느 노드에 있었는지 실행에 없으므로 노드는 표시하지 않습니다",
    ],
    ["the training's metrics are not here: {why}", "학습 지표를 가져오지 못했습니다: {why}"],
    [
        "{n:w} of {all:w} metrics of the training are not drawn",
        "학습 지표 {all}개 중 {n}개는 그리지 않습니다",
    ],
    ["not all metrics of the training came in time", "일부 학습 지표가 제때 오지 않았습니다"],
    // A GPU's phases.
    [
        "{gpu:w}: no utilisation under MIG, and power is the whole board's",
        "GPU {gpu}: MIG에서는 사용률이 없고 전력은 보드 전체의 값입니다",
    ],
    ["{gpu:w}: no utilisation: told by power alone", "GPU {gpu}: 사용률이 없어 전력만으로 판단합니다"],
    ["{gpu:w}: no utilisation: idle cannot be told", "GPU {gpu}: 사용률이 없어 유휴를 판단할 수 없습니다"],
    [
        "{gpu:w}: no power, so that waiting at full utilisation looks like work",
        "GPU {gpu}: 전력이 없어, 사용률이 높은 채 기다리는 시간도 작업으로 보입니다",
    ],
    // Where a traceback ends; last, since much has this form.
    ["{exception:w} at {file:w} in {function:w}", "{exception} ({file}, {function})"],
    ["{exception:w} at {file:w}", "{exception} ({file})"],
    ["{file:w} in {function:w}", "{file}, {function}"],
    ["{word:w}", "{word}"],
];
