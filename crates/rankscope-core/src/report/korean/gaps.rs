//! Why a value is missing, and what is noted beside one that is there.

use super::Pair;

pub const PAIRS: &[Pair] = &[
    // The kinds of reason.
    ["absent", "없음"],
    ["denied", "권한 없음"],
    ["broken", "형식 이상"],
    ["virtualised", "가상화됨"],
    ["off", "꺼짐"],
    ["first sample", "첫 샘플"],
    ["no limit visible", "보이는 한도 없음"],
    ["not a container", "컨테이너 아님"],
    ["late", "응답 지연"],
    // Files.
    ["{path:w}: no such file", "{path}: 파일이 없습니다"],
    [
        "the {name:w} controller is not enabled for {path:w} or above ({file:w} has: {enabled})",
        "{path}와(과) 그 위에서 {name} 컨트롤러가 켜져 있지 않습니다({file}: {enabled})",
    ],
    ["no {file:w} in {path:w} or above", "{path}와(과) 그 위에 {file} 파일이 없습니다"],
    ["{path:w}: permission denied", "{path}: 권한이 없습니다"],
    ["{path:w}: the kernel was started without psi=1", "{path}: 커널이 psi=1 없이 시작되었습니다"],
    [
        "{path:w}: not the kernel's: {fstype:w} is mounted over it",
        "{path}: 커널의 파일이 아니라 그 위에 마운트된 {fstype}입니다",
    ],
    ["{path:w}: longer than 16 MiB", "{path}: 16 MiB보다 깁니다"],
    ["{path:w}: no `some` line", "{path}: `some` 줄이 없습니다"],
    ["{path:w} has no disk", "{path}에 디스크가 없습니다"],
    ["{path:w} shows no port", "{path}에 포트가 없습니다"],
    ["{path:w} has no {key:w}", "{path}에 {key}이(가) 없습니다"],
    [
        "{path:w}: line {n:w}: expected {key:w} and a number",
        "{path}: {n}번째 줄에 {key}와(과) 숫자가 있어야 합니다",
    ],
    ["{path:w}: this kernel does not print the line", "{path}: 이 커널은 그 줄을 출력하지 않습니다"],
    [
        "{path:w}: this kernel has no OOM counter (Linux 4.13)",
        "{path}: 이 커널에는 OOM 카운터가 없습니다(Linux 4.13)",
    ],
    ["{path:w} is that of a {name:w} sandbox", "{path}은(는) {name} 샌드박스의 것입니다"],
    ["{path:w}: no interface but loopback", "{path}: 루프백 외에 인터페이스가 없습니다"],
    ["{path:w}: gives no finite number", "{path}: 유한한 수가 아닙니다"],
    ["{path:w}: not a number", "{path}: 숫자가 아닙니다"],
    ["{path:w} is read for the first time", "{path}을(를) 처음 읽었습니다"],
    ["{path:w} started anew", "{path}의 집계가 다시 시작되었습니다"],
    ["{path:w} is another's than before", "{path}이(가) 이전과 다른 대상의 것입니다"],
    [
        "{path:w}: a counter of 32 bits that has stopped at its end",
        "{path}: 32비트 카운터가 끝에서 멈췄습니다",
    ],
    ["odd lines are left out; the first is line {n:w}", "형식이 이상한 줄은 제외했습니다(처음은 {n}번째 줄)"],
    // Cgroups.
    ["the process is in the root cgroup ({path})", "프로세스가 루트 cgroup({path})에 있습니다"],
    [
        "{path:w} is a login scope, and nothing on its path is limited",
        "{path}은(는) 로그인 스코프이며 그 경로에 한도가 없습니다",
    ],
    ["/proc/<pid>/cgroup gives no cgroup", "/proc/<pid>/cgroup에 cgroup이 없습니다"],
    [
        "in no v1 hierarchy, and /proc/<pid>/cgroup has no v2 line",
        "v1 계층에 속하지 않고 /proc/<pid>/cgroup에 v2 줄도 없습니다",
    ],
    ["the cgroup of the process was removed: {path}", "프로세스의 cgroup이 삭제되었습니다: {path}"],
    [
        "the process is in {path:w}, and that hierarchy is not mounted here",
        "프로세스는 {path}에 있으며, 그 계층은 여기에 마운트되어 있지 않습니다",
    ],
    [
        "the process is outside of our cgroup namespace: {path:w}, mounted from {roots}",
        "프로세스가 우리 cgroup 네임스페이스 밖에 있습니다: {path}, 마운트 위치 {roots}",
    ],
    [
        "the mount begins above our cgroup namespace, so the names between are not known: {path:w}, mounted from {roots}",
        "마운트가 우리 cgroup 네임스페이스 위에서 시작되어 그 사이의 이름을 알 수 없습니다: {path}, 마운트 위치 {roots}",
    ],
    [
        "the process is outside of the part of the hierarchy that is mounted here: {path:w}, mounted from {roots}",
        "프로세스가 여기에 마운트된 계층 부분의 밖에 있습니다: {path}, 마운트 위치 {roots}",
    ],
    ["no visible level of the memory hierarchy has a limit", "보이는 메모리 계층 어디에도 한도가 없습니다"],
    [
        "no visible level of the memory hierarchy has a limit, but {Throttled}",
        "보이는 메모리 계층 어디에도 한도가 없지만, {Throttled}",
    ],
    [
        "throttled before that at memory.high {bytes:w} bytes of {level:w}",
        "그 전에 {level}의 memory.high({bytes} bytes)에서 제한됩니다",
    ],
    ["limit level not visible", "한도가 걸린 수준이 보이지 않습니다"],
    [
        "more than the node has: the effective ceiling is {bytes:w} bytes of RAM",
        "노드보다 큰 한도입니다. 실제 상한은 RAM {bytes} bytes입니다",
    ],
    [
        "the working set of no limited level could be read",
        "한도가 있는 어느 수준의 워킹 셋도 읽지 못했습니다",
    ],
    ["swap is not limited", "스왑에 한도가 없습니다"],
    ["no level has a limit file", "한도 파일이 있는 수준이 없습니다"],
    ["{path:w}: the limit is 0", "{path}: 한도가 0입니다"],
    ["not read: the level is not limited", "한도가 없는 수준이므로 읽지 않았습니다"],
    ["cgroup v1 does not count this", "cgroup v1은 이것을 집계하지 않습니다"],
    [
        "the v2 cgroup {path:w} is not the memory cgroup {own:w}",
        "v2 cgroup {path}은(는) 메모리 cgroup {own}이(가) 아닙니다",
    ],
    [
        "no quota on the visible path, cpuset and affinity unknown",
        "보이는 경로에 쿼터가 없고 cpuset과 affinity를 알 수 없습니다",
    ],
    ["no quota on the visible path", "보이는 경로에 쿼터가 없습니다"],
    ["the CPU limit is 0", "CPU 한도가 0입니다"],
    [
        "{path:w}: no such directory, so the path does not fit the mount",
        "{path}: 디렉터리가 없어 경로가 마운트와 맞지 않습니다",
    ],
    [
        "{file:w} has no {key:w}: the cpu controller is not enabled here",
        "{file}에 {key}이(가) 없습니다. 여기서는 cpu 컨트롤러가 켜져 있지 않습니다",
    ],
    [
        "cpu.stat has no nr_throttled: the cpu controller is not enabled here",
        "cpu.stat에 nr_throttled가 없습니다. 여기서는 cpu 컨트롤러가 켜져 있지 않습니다",
    ],
    ["sampled", "샘플로 구한 값"],
    [
        "a window's maximum counts what memory.peak saw between two readings",
        "구간의 최댓값은 두 번 읽는 사이 memory.peak가 본 값도 포함합니다",
    ],
    [
        "a window's maximum counts what memory.max_usage_in_bytes saw between two readings",
        "구간의 최댓값은 두 번 읽는 사이 memory.max_usage_in_bytes가 본 값도 포함합니다",
    ],
    // Rates and courses.
    ["needs two readings", "두 번 읽어야 합니다"],
    ["needs eight readings, a second apart", "1초 간격으로 여덟 번 읽어야 합니다"],
    ["memory does not grow steadily", "메모리가 꾸준히 늘지 않습니다"],
    ["/proc/stat holds only zeros", "/proc/stat에 0만 있습니다"],
    ["/proc/meminfo: MemTotal is 0", "/proc/meminfo: MemTotal이 0입니다"],
    ["/proc/stat did not move between the two readings", "두 번 읽는 사이 /proc/stat이 변하지 않았습니다"],
    // Processes.
    [
        "no process of the tree could be read: it has ended, or /proc hides it",
        "트리의 프로세스를 하나도 읽지 못했습니다. 끝났거나 /proc에서 숨겨져 있습니다",
    ],
    ["no process of the tree gives it", "이 값을 주는 프로세스가 트리에 없습니다"],
    ["no --pid: nobody's process tree", "--pid가 없어 볼 프로세스 트리가 없습니다"],
    ["looked at in another way", "다른 방법으로 봅니다"],
    ["asked for with --pss", "--pss로 요청할 때만 읽습니다"],
    ["over-counts shared pages", "공유 페이지를 중복해서 셉니다"],
    [
        "bytes through read and write calls: page cache, pipes and sockets included",
        "read와 write 호출로 오간 바이트입니다(페이지 캐시, 파이프, 소켓 포함)",
    ],
    ["{n:w} of the tree's processes not readable", "트리의 프로세스 {n}개를 읽을 수 없습니다"],
    [
        "the step last logged at or before the window's last reading",
        "구간의 마지막 읽기 이전에 마지막으로 기록된 스텝입니다",
    ],
    // File systems.
    ["neither used nor available space", "사용 중인 공간도 사용 가능한 공간도 없습니다"],
    ["the file system reports no blocks", "파일 시스템이 블록을 알리지 않습니다"],
    ["the tree has no statvfs of {path}", "트리에 {path}의 statvfs가 없습니다"],
    ["statvfs({path:w}): no answer for {n:w} s", "statvfs({path}): {n} s 동안 답이 없습니다"],
    ["statvfs({path:w}): the helper takes no question", "statvfs({path}): 헬퍼가 질문을 받지 않습니다"],
    ["the helper process could not be started", "헬퍼 프로세스를 시작하지 못했습니다"],
    // GPUs.
    ["library not found: {error}", "라이브러리를 찾지 못했습니다: {error}"],
    ["no device file or driver of a GPU is here", "여기에는 GPU의 장치 파일도 드라이버도 없습니다"],
    ["not asked for (--no-gpu)", "요청하지 않았습니다(--no-gpu)"],
    ["a recorded tree has no driver to ask", "기록된 트리에는 물어볼 드라이버가 없습니다"],
    ["the driver has not answered yet", "드라이버가 아직 답하지 않았습니다"],
    ["the driver does not answer any more: {why}", "드라이버가 더 이상 답하지 않습니다: {why}"],
    ["a call to the driver does not come back", "드라이버 호출이 돌아오지 않습니다"],
    ["no thread could be started: {error}", "스레드를 시작하지 못했습니다: {error}"],
    ["not read yet", "아직 읽지 않았습니다"],
    ["nvmlDeviceGetFieldValues: counted anew", "nvmlDeviceGetFieldValues: 집계가 다시 시작되었습니다"],
    ["{call:w}: this driver has no such function", "{call}: 이 드라이버에는 그 함수가 없습니다"],
    ["{call:w}: not available", "{call}: 사용할 수 없습니다"],
    ["{call:w}: not supported ({code:w}){versions}", "{call}: 지원되지 않습니다({code}){versions}"],
    ["{call:w}: not supported ({code:w})", "{call}: 지원되지 않습니다({code})"],
    ["{call:w}: no permission ({code:w})", "{call}: 권한이 없습니다({code})"],
    ["{call:w}: not found ({code:w})", "{call}: 찾을 수 없습니다({code})"],
    ["{call:w}: GPU is lost ({code:w})", "{call}: GPU가 연결에서 사라졌습니다({code})"],
    ["{call:w}: unknown error ({code:w})", "{call}: 알 수 없는 오류입니다({code})"],
    [
        "under MIG no utilisation exists, neither of the GPU nor of an instance",
        "MIG에서는 GPU에도 인스턴스에도 사용률이 없습니다",
    ],
    [
        "power is the whole board's, not an instance's: see the board's power",
        "전력은 인스턴스가 아니라 보드 전체의 값입니다. 보드 전력을 보세요",
    ],
    ["the whole board's, not an instance's", "인스턴스가 아니라 보드 전체의 값입니다"],
    [
        "the driver lists no process of this job on it, or not its memory",
        "드라이버의 목록에 이 작업의 프로세스나 그 메모리가 없습니다",
    ],
    ["the driver gives no total", "드라이버가 전체 용량을 알리지 않습니다"],
    [
        "this driver does not tell reserved memory from used",
        "이 드라이버는 예약된 메모리와 사용 중인 메모리를 구분하지 않습니다",
    ],
    [
        "reserved memory counts as used and can't be told apart (NVML's older call)",
        "예약된 메모리가 사용량에 포함되며 구분할 수 없습니다(NVML의 이전 호출)",
    ],
    ["the driver gives a power limit of 0", "드라이버가 알린 전력 한도가 0입니다"],
    [
        "sysfs shows load and temperature of this GPU and nothing else",
        "sysfs에는 이 GPU의 부하와 온도만 있습니다",
    ],
];
