//! How a job ended: what `ending` says.

use super::Pair;

pub const PAIRS: &[Pair] = &[
    // What the parent was told.
    ["ended with exit code 0", "종료 코드 0으로 끝났습니다"],
    ["no end was seen", "종료가 관찰되지 않았습니다"],
    [
        "ended; its exit code is not visible to one that did not start it",
        "끝났지만, 직접 시작하지 않은 프로세스의 종료 코드는 볼 수 없습니다",
    ],
    ["killed by {signal:w}, core dumped", "{signal}로 종료되었고 코어 덤프가 남았습니다"],
    ["killed by {signal:w}", "{signal}로 종료되었습니다"],
    ["killed by signal {n:w}, core dumped", "시그널 {n}로 종료되었고 코어 덤프가 남았습니다"],
    ["killed by signal {n:w}", "시그널 {n}로 종료되었습니다"],
    ["exit code {code:w}", "종료 코드 {code}로 끝났습니다"],
    [
        "exit code {code:w}: {signal:w} as a shell reports it",
        "종료 코드 {code}로 끝났습니다(셸이 알리는 {signal})",
    ],
    [
        "exit code {code:w}: signal {n:w} as a shell reports it",
        "종료 코드 {code}로 끝났습니다(셸이 알리는 시그널 {n})",
    ],
    [
        "{Exit}; {code:w} is also -{n:w} ({signal}) in eight bits",
        "{Exit}. {code}는 8비트로 나타낸 -{n}({signal})일 수도 있습니다",
    ],
    // OOM.
    [
        "{Exit}; {Killed} OOM-killed in this cgroup during the run (in a cgroup below the own one), {Whose}",
        "{Exit}. 실행 중 이 cgroup의 하위 cgroup에서 {Killed} OOM으로 강제 종료되었습니다. {Whose}",
    ],
    [
        "{Exit}; {Killed} OOM-killed in this cgroup during the run, {Whose}",
        "{Exit}. 실행 중 이 cgroup에서 {Killed} OOM으로 강제 종료되었습니다. {Whose}",
    ],
    [
        "{Killed} OOM-killed in this cgroup during the run",
        "실행 중 이 cgroup에서 {Killed} OOM으로 강제 종료되었습니다",
    ],
    [
        "{Killed} OOM-killed on this node meanwhile, whose is not visible",
        "그동안 이 노드에서 {Killed} OOM으로 강제 종료되었으며, 누구의 것인지는 보이지 않습니다",
    ],
    ["1 process was", "프로세스 1개가"],
    ["{n:w} processes were", "프로세스 {n}개가"],
    [
        "the node ran out of memory, not a limit of this container",
        "이 컨테이너의 한도가 아니라 노드의 메모리가 바닥났습니다",
    ],
    ["whose limit it was is not visible from here", "어느 한도였는지는 여기서 보이지 않습니다"],
    ["{Limit} was met", "{Limit}에 도달했습니다"],
    ["this container's own limit", "이 컨테이너의 한도"],
    ["the limit of {level:w}", "{level}의 한도"],
    ["once", "1번"],
    ["{n:w} times", "{n}번"],
    [
        "{Exit}, no OOM kill recorded ({Limit} was met {Times}, and memory could be reclaimed)",
        "{Exit}. OOM 종료 기록은 없습니다({Limit}에 {Times} 도달했고 메모리를 회수할 수 있었습니다)",
    ],
    ["{Exit}, no OOM kill recorded", "{Exit}. OOM 종료 기록은 없습니다"],
    [
        "{Exit}; whether by the OOM killer can't be told: {Why}",
        "{Exit}. OOM killer 때문인지는 알 수 없습니다: {Why}",
    ],
    ["not known: {Why}", "알 수 없음: {Why}"],
    ["nothing was read", "읽은 것이 없습니다"],
    ["{Limit} was hit {Times}", "{Limit}에 {Times} 도달했습니다"],
    ["the job went on and ended well", "작업은 계속되어 정상적으로 끝났습니다"],
    // Other reasons.
    [
        "{Exit}: /dev/shm was {share:w} % full, and a page that it can't give is a bus error",
        "{Exit}. /dev/shm이 {share} % 찼고, 여기서 페이지를 얻지 못하면 버스 오류가 납니다",
    ],
    [
        "{signal:w} came at the time limit of {whose}; the job ended {seconds:w} s later: {Exit}",
        "{whose}의 시간 제한에 따라 {signal}이 왔고, 작업은 {seconds} s 뒤에 끝났습니다. {Exit}",
    ],
    [
        "{signal:w} came from process {pid}; the job ended {seconds:w} s later: {Exit}",
        "프로세스 {pid}에서 {signal}이 왔고, 작업은 {seconds} s 뒤에 끝났습니다. {Exit}",
    ],
    [
        "{signal:w} came from outside (the terminal, the container's runtime, a scheduler); the job ended {seconds:w} s later: {Exit}",
        "외부(터미널, 컨테이너 런타임, 스케줄러)에서 {signal}이 왔고, 작업은 {seconds} s 뒤에 끝났습니다. {Exit}",
    ],
    [
        "{Exit}; the GPU had no room for {size} more: {Exception}",
        "{Exit}. GPU에 {size}를 더 할당할 공간이 없었습니다: {Exception}",
    ],
    ["{Exit}; the GPU's memory was full: {Exception}", "{Exit}. GPU 메모리가 가득 찼습니다: {Exception}"],
    [
        "exit code {code:w}; {exception:w} at {Place}",
        "종료 코드 {code}로 끝났습니다. Python 예외: {exception} ({Place})",
    ],
    ["exit code {code:w}; {exception:w}", "종료 코드 {code}로 끝났습니다. Python 예외: {exception}"],
    // Facts.
    ["end of the process", "프로세스의 종료"],
    ["processes OOM-killed during the run", "실행 중 OOM으로 강제 종료된 프로세스"],
    ["of these in a cgroup below", "그중 하위 cgroup에서"],
    ["memory of the node that was available at the end", "종료 때 노드의 사용 가능한 메모리"],
    ["processes OOM-killed on the node during the run", "실행 중 노드에서 OOM으로 강제 종료된 프로세스"],
    ["request to end", "종료 요청"],
    ["Python traceback", "Python 트레이스백"],
    ["met {Count}, out of memory {n:w}", "도달 {Count}, 메모리 부족 {n}"],
    ["met {Count}", "도달 {Count}"],
    ["not counted", "집계되지 않음"],
    ["{signal:w} {seconds:w} s before the end", "종료 {seconds} s 전 {signal}"],
    ["{share:w} % full", "{share} % 참"],
    ["{exception:w} at {Place}, tried to allocate {size}", "{exception} ({Place}), {size} 할당 시도"],
    ["{exception:w}, tried to allocate {size}", "{exception}, {size} 할당 시도"],
    ["signal to rankscope", "rankscope에 온 시그널"],
    // An end that nobody saw.
    [
        "no end was told: the recorder was killed too, or its node or its way to the server went away",
        "종료가 전달되지 않았습니다. 레코더도 강제 종료되었거나, 노드 또는 서버 연결이 사라졌습니다",
    ],
    [
        "no end was seen: the recorder was asked to end before the job did",
        "종료가 관찰되지 않았습니다. 작업보다 먼저 레코더가 종료 요청을 받았습니다",
    ],
    [
        "no end was seen: the recorder was killed too, or the node went away",
        "종료가 관찰되지 않았습니다. 레코더도 강제 종료되었거나 노드가 사라졌습니다",
    ],
    [
        "no end was seen: the node has started anew since (its boot id is another)",
        "종료가 관찰되지 않았습니다. 그 뒤 노드가 다시 시작되었습니다(부트 ID가 다릅니다)",
    ],
    [
        "memory stood at {share:w} % of its limit and grew {size} a minute: an OOM kill of the whole container would look like this, and can't be proven from here",
        "메모리는 한도의 {share} %였고 분당 {size}씩 늘고 있었습니다. 컨테이너 전체가 OOM으로 종료되면 이렇게 보이지만, 여기서는 증명할 수 없습니다",
    ],
    [
        "memory stood at {share:w} % of its limit: an OOM kill of the whole container would look like this, and can't be proven from here",
        "메모리는 한도의 {share} %였습니다. 컨테이너 전체가 OOM으로 종료되면 이렇게 보이지만, 여기서는 증명할 수 없습니다",
    ],
    ["last sign of life", "마지막 기록"],
    ["boot id", "부트 ID"],
    ["another than in the record", "기록과 다름"],
    ["memory in the last sample", "마지막 샘플의 메모리"],
    [
        "1: an OOM kill takes every process of the container",
        "1: OOM 종료가 컨테이너의 모든 프로세스를 종료시킵니다",
    ],
    ["ran for", "실행 시간"],
];
