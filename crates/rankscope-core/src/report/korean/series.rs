//! What each series measures, and what it is easily taken for: the table of series.

use super::Pair;

pub const PAIRS: &[Pair] = &[
    // The node.
    [
        "share of the node's CPU time that was neither idle nor waiting for I/O; guest time is part of user time",
        "노드의 CPU 시간 중 유휴도 I/O 대기도 아닌 비율입니다. 게스트 시간은 사용자 시간에 포함됩니다",
    ],
    [
        "this job alone: every process of the node counts, and 20 % can be all of a quota",
        "이 작업만의 값이 아닙니다. 노드의 모든 프로세스가 포함되며, 20 %가 쿼터 전부일 수도 있습니다",
    ],
    [
        "share of the node's CPU time that was idle while I/O was outstanding",
        "노드의 CPU 시간 중 I/O가 끝나지 않은 채 유휴였던 비율입니다",
    ],
    [
        "the amount of I/O: a busy CPU shows none of it, and waits for network file systems need not show",
        "I/O의 양이 아닙니다. CPU가 바쁘면 나타나지 않으며, 네트워크 파일 시스템 대기는 보이지 않을 수 있습니다",
    ],
    [
        "runnable and uninterruptible tasks, exponentially damped over one minute",
        "실행 가능하거나 중단할 수 없는 대기 상태인 태스크 수의 1분 지수 평균입니다",
    ],
    [
        "CPU use: tasks that wait for a disk count, and it is not divided by the CPUs",
        "CPU 사용량이 아닙니다. 디스크를 기다리는 태스크도 세며 CPU 수로 나누지 않습니다",
    ],
    [
        "memory of the node that is not available to new work; psutil 7.1.0 and later call it `used`",
        "노드의 메모리 중 새 작업이 쓸 수 없는 양입니다. psutil 7.1.0부터 `used`라고 부릅니다",
    ],
    [
        "this job's use, nor what its limit is compared with",
        "이 작업의 사용량도, 한도와 비교되는 값도 아닙니다",
    ],
    [
        "node_memory_usage_megabytes relative to MemTotal",
        "MemTotal에 대한 node_memory_usage_megabytes의 비율입니다",
    ],
    [
        "how close the job is to an OOM kill: its limit can be far smaller than MemTotal",
        "작업이 OOM 종료에 얼마나 가까운지를 나타내지 않습니다. 작업의 한도는 MemTotal보다 훨씬 작을 수 있습니다",
    ],
    [
        "the kernel's estimate of what new work could get without swapping",
        "스왑 없이 새 작업이 얻을 수 있는 양에 대한 커널의 추정치입니다",
    ],
    [
        "what the job may still take: its limit ends that earlier",
        "작업이 더 쓸 수 있는 양이 아닙니다. 그 전에 작업의 한도에 걸립니다",
    ],
    [
        "share of the time in which at least one task of the node waited for a CPU",
        "노드의 태스크가 하나라도 CPU를 기다린 시간의 비율입니다",
    ],
    [
        "the container's: a quota's waits show in container_cpu_pressure_some_percentage",
        "컨테이너의 값이 아닙니다. 쿼터로 인한 대기는 container_cpu_pressure_some_percentage에 나타납니다",
    ],
    [
        "share of the time in which at least one task of the node waited for memory",
        "노드의 태스크가 하나라도 메모리를 기다린 시간의 비율입니다",
    ],
    [
        "the container's: a limit's stalls show in container_memory_pressure_full_percentage",
        "컨테이너의 값이 아닙니다. 한도로 인한 정체는 container_memory_pressure_full_percentage에 나타납니다",
    ],
    [
        "share of the time in which at least one task of the node waited for I/O",
        "노드의 태스크가 하나라도 I/O를 기다린 시간의 비율입니다",
    ],
    ["the container's", "컨테이너의 값이 아닙니다"],
    [
        "bytes read from the node's disks since boot: whole disks, not partitions, nor what stands on disks (device mapper, RAID, loop) or in memory",
        "부팅 이후 노드의 디스크에서 읽은 바이트입니다. 파티션이 아닌 디스크 전체이며, 디스크 위의 장치(device mapper, RAID, loop)나 메모리의 장치는 세지 않습니다",
    ],
    [
        "this job's alone: every process of the node counts; page cache hits and network file systems do not pass a disk",
        "이 작업만의 값이 아닙니다. 노드의 모든 프로세스가 포함됩니다. 페이지 캐시 적중과 네트워크 파일 시스템은 디스크를 거치지 않습니다",
    ],
    ["bytes written to the same disks", "같은 디스크에 쓴 바이트입니다"],
    [
        "this job's alone; and the page cache is written back later",
        "이 작업만의 값이 아니며, 페이지 캐시는 나중에 기록됩니다",
    ],
    [
        "rate of node_disk_read_megabytes; a disk that came or was counted anew is left out for one interval",
        "node_disk_read_megabytes의 초당 변화량입니다. 새로 나타났거나 다시 집계된 디스크는 한 구간 동안 제외합니다",
    ],
    ["rate of node_disk_write_megabytes", "node_disk_write_megabytes의 초당 변화량입니다"],
    ["this job's alone", "이 작업만의 값이 아닙니다"],
    // Memory of the container.
    [
        "memory charged to the own cgroup, page cache included; a window's maximum counts a rise of the kernel's own peak between two readings",
        "자신의 cgroup에 계산된 메모리이며 페이지 캐시를 포함합니다. 구간의 최댓값에는 두 번 읽는 사이 커널 최댓값이 오른 것도 들어갑니다",
    ],
    [
        "what decides an OOM kill: page cache is given back first, so 96 % of the limit for hours can be sound",
        "OOM 종료를 결정하는 값이 아닙니다. 페이지 캐시를 먼저 돌려주므로 몇 시간 동안 한도의 96 %여도 정상일 수 있습니다",
    ],
    [
        "usage of the own cgroup without the page cache that can go at once, as the kubelet computes it",
        "자신의 cgroup 사용량에서 바로 버릴 수 있는 페이지 캐시를 뺀 값이며, kubelet의 계산과 같습니다",
    ],
    [
        "RSS: page cache in active use, shared memory and kernel memory are part of it",
        "RSS가 아닙니다. 사용 중인 페이지 캐시, 공유 메모리, 커널 메모리를 포함합니다",
    ],
    ["anonymous memory: heaps, stacks, tensors on the CPU", "익명 메모리입니다(힙, 스택, CPU의 텐서)"],
    [
        "shared memory: that is container_memory_shmem_megabytes",
        "공유 메모리가 아닙니다. 그것은 container_memory_shmem_megabytes입니다",
    ],
    [
        "page cache, shared memory and tmpfs files included",
        "페이지 캐시이며 공유 메모리와 tmpfs 파일을 포함합니다",
    ],
    [
        "all reclaimable: shared memory and tmpfs files stay",
        "모두 회수할 수 있는 것은 아닙니다. 공유 메모리와 tmpfs 파일은 남습니다",
    ],
    [
        "shared memory and tmpfs files (/dev/shm of data loaders): charged, and not reclaimable without swap",
        "공유 메모리와 tmpfs 파일입니다(데이터 로더의 /dev/shm). 한도에 계산되며 스왑 없이는 회수할 수 없습니다",
    ],
    [
        "bounded by the memory limit alone: /dev/shm has a size of its own (mount_shm_…)",
        "메모리 한도에만 묶이지 않습니다. /dev/shm에는 별도의 크기가 있습니다(mount_shm_…)",
    ],
    [
        "kernel memory charged to the own cgroup (v2: Linux 5.18 and later)",
        "자신의 cgroup에 계산된 커널 메모리입니다(v2: Linux 5.18 이상)",
    ],
    [
        "highest usage, page cache included: since the cgroup was made where the kernel keeps it (v2: Linux 5.19), else of our own samples, and the note says so",
        "페이지 캐시를 포함한 최대 사용량입니다. 커널이 기록하면(v2: Linux 5.19) cgroup 생성 이후의 값이고, 아니면 샘플의 최댓값이며 비고에 표시합니다",
    ],
    [
        "this run's peak where the cgroup is older than the run",
        "cgroup이 이 실행보다 먼저 만들어졌다면 이 실행의 최댓값이 아닙니다",
    ],
    ["swap used by the own cgroup", "자신의 cgroup이 쓰는 스왑입니다"],
    ["swap that the own cgroup may use", "자신의 cgroup이 쓸 수 있는 스왑입니다"],
    [
        "smallest memory limit on the visible path; the level is the cgroup that owns it",
        "보이는 경로에서 가장 작은 메모리 한도입니다. 수준은 그 한도를 가진 cgroup입니다",
    ],
    [
        "the node's memory; with a private cgroup namespace on v2, a limit that only the pod has is not visible",
        "노드의 메모리가 아닙니다. v2의 전용 cgroup 네임스페이스에서는 파드에만 있는 한도가 보이지 않습니다",
    ],
    [
        "working set of the cgroup that owns the limit, siblings included: what the limit is compared with",
        "한도를 가진 cgroup의 워킹 셋이며 형제 cgroup을 포함합니다. 한도와 비교되는 값입니다",
    ],
    [
        "the own cgroup's, where a level above owns the limit",
        "상위 수준이 한도를 가진 경우에는 자신의 cgroup만의 값이 아닙니다",
    ],
    [
        "working set of the level that owns the limit, relative to the limit",
        "한도를 가진 수준의 워킹 셋을 한도에 대한 비율로 나타낸 값입니다",
    ],
    [
        "usage / limit: page cache that can go at once is left out",
        "사용량 / 한도가 아닙니다. 바로 버릴 수 있는 페이지 캐시는 제외합니다",
    ],
    [
        "what is left at the tightest of all limited levels, which need not be the one with the smallest limit",
        "한도가 있는 수준 중 가장 여유가 적은 곳에 남은 양입니다. 한도가 가장 작은 수준과 다를 수 있습니다",
    ],
    [
        "reserved for this cgroup: siblings below that level use it too",
        "이 cgroup에 예약된 양이 아닙니다. 그 수준 아래의 형제 cgroup도 씁니다",
    ],
    [
        "processes of the own cgroup that the kernel's OOM killer ended since the first reading",
        "첫 읽기 이후 커널의 OOM killer가 종료한 자신의 cgroup의 프로세스 수입니다",
    ],
    [
        "every SIGKILL: the kubelet's eviction and user-space OOM daemons are not counted, nor kills before the recording",
        "모든 SIGKILL이 아닙니다. kubelet의 축출, 사용자 공간 OOM 데몬, 기록 이전의 종료는 세지 않습니다",
    ],
    [
        "times an allocation met the limit since the first reading; the kernel then reclaims, which is no kill",
        "첫 읽기 이후 할당이 한도에 도달한 횟수입니다. 이때 커널은 메모리를 회수하며, 강제 종료가 아닙니다",
    ],
    [
        "kills; and hits of memory.high are not in it",
        "강제 종료 횟수가 아니며, memory.high에 도달한 것은 포함하지 않습니다",
    ],
    [
        "share of the time in which all tasks of the own cgroup that wanted to run waited for memory",
        "실행하려던 자신의 cgroup의 모든 태스크가 메모리를 기다린 시간의 비율입니다",
    ],
    [
        "use of memory: at 0 % it can be nearly full",
        "메모리 사용률이 아닙니다. 0 %여도 거의 가득 찼을 수 있습니다",
    ],
    [
        "time until the limit at the present rate of growth of what is no page cache; missing while that does not grow steadily",
        "페이지 캐시가 아닌 메모리가 지금 속도로 늘 때 한도까지 남은 시간입니다. 꾸준히 늘지 않으면 값이 없습니다",
    ],
    ["a forecast of anything but the present rate", "현재 속도를 연장한 것일 뿐 예측이 아닙니다"],
    // CPU, I/O and tasks of the container.
    ["CPU time of the own cgroup per second", "자신의 cgroup이 1초에 쓴 CPU 시간입니다"],
    ["a percentage of the node", "노드에 대한 비율이 아닙니다"],
    [
        "CPUs that the process can use at most, fractions kept",
        "프로세스가 최대로 쓸 수 있는 CPU 수이며 소수도 유지합니다",
    ],
    [
        "the node's number of CPUs; cpu.shares, cpu.weight and a pod's CPU request are no limits",
        "노드의 CPU 수가 아닙니다. cpu.shares, cpu.weight, 파드의 CPU request는 한도가 아닙니다",
    ],
    [
        "CPU usage of the own cgroup relative to its limit",
        "자신의 cgroup의 CPU 사용량을 한도에 대한 비율로 나타낸 값입니다",
    ],
    [
        "100 % per CPU, and where a level above owns the quota, siblings use it too",
        "CPU마다 100 %가 아닙니다. 상위 수준이 쿼터를 가지면 형제 cgroup도 함께 씁니다",
    ],
    [
        "share of the quota periods in which the level named was throttled",
        "표시된 수준이 스로틀된 쿼터 주기의 비율입니다",
    ],
    [
        "the share of time lost: a period counts when a single thread was stopped in it",
        "잃은 시간의 비율이 아닙니다. 스레드 하나만 멈춰도 그 주기를 셉니다",
    ],
    [
        "time throttled since the cgroup was made, summed over CPUs: may exceed wall time",
        "cgroup이 만들어진 이후 스로틀된 시간을 CPU마다 더한 값입니다. 실제 시간보다 클 수 있습니다",
    ],
    ["wall time", "실제 시간이 아닙니다"],
    [
        "share of the time in which at least one task of the own cgroup waited for a CPU",
        "자신의 cgroup의 태스크가 하나라도 CPU를 기다린 시간의 비율입니다",
    ],
    [
        "only throttling: waits for other processes of the node are in it",
        "스로틀링만이 아닙니다. 노드의 다른 프로세스 때문에 기다린 시간도 포함합니다",
    ],
    [
        "bytes read from block devices by the own cgroup since it was made; network file systems do not count",
        "cgroup이 만들어진 이후 블록 장치에서 읽은 바이트입니다. 네트워크 파일 시스템은 세지 않습니다",
    ],
    [
        "what the program read: page cache hits and network file systems do not pass a block device here",
        "프로그램이 읽은 양이 아닙니다. 페이지 캐시 적중과 네트워크 파일 시스템은 블록 장치를 거치지 않습니다",
    ],
    [
        "bytes written to block devices; v1 charges writeback of buffered writes to nobody",
        "블록 장치에 쓴 바이트입니다. v1은 버퍼 쓰기의 나중 기록을 아무에게도 계산하지 않습니다",
    ],
    [
        "what the program wrote so far: the page cache is written back later",
        "프로그램이 지금까지 쓴 양이 아닙니다. 페이지 캐시는 나중에 기록됩니다",
    ],
    [
        "share of the time in which all tasks of the own cgroup that wanted to run waited for I/O",
        "실행하려던 자신의 cgroup의 모든 태스크가 I/O를 기다린 시간의 비율입니다",
    ],
    [
        "the load of the disk: another container may cause the wait",
        "디스크의 부하가 아닙니다. 다른 컨테이너 때문에 기다릴 수도 있습니다",
    ],
    ["processes and threads in the own cgroup", "자신의 cgroup의 프로세스와 스레드 수입니다"],
    ["processes alone: every thread is a task", "프로세스만 센 값이 아닙니다. 스레드마다 태스크 하나입니다"],
    // Networks.
    [
        "bytes received by the pod's interfaces, without loopback and virtual duplicates",
        "파드의 인터페이스가 받은 바이트이며 루프백과 가상 중복은 제외합니다",
    ],
    [
        "RDMA traffic (collectives over InfiniBand or RoCE), nor one container of several in the pod",
        "RDMA 트래픽(InfiniBand나 RoCE의 collective)이 아니며, 파드의 여러 컨테이너 중 하나만의 값도 아닙니다",
    ],
    ["bytes sent by the pod's interfaces", "파드의 인터페이스가 보낸 바이트입니다"],
    ["RDMA traffic", "RDMA 트래픽이 아닙니다"],
    [
        "rate of the above; an interface that was made anew is left out for one interval",
        "위 값의 초당 변화량입니다. 다시 만들어진 인터페이스는 한 구간 동안 제외합니다",
    ],
    ["rate of the above", "위 값의 초당 변화량입니다"],
    [
        "bytes received by the node's physical interfaces, when the job runs in the host's network namespace",
        "작업이 호스트의 네트워크 네임스페이스에서 실행될 때 노드의 물리 인터페이스가 받은 바이트입니다",
    ],
    [
        "this job's alone: every process of the host's network counts; RDMA traffic is not in it",
        "이 작업만의 값이 아닙니다. 호스트 네트워크의 모든 프로세스가 포함되며 RDMA 트래픽은 들어 있지 않습니다",
    ],
    ["bytes sent by the node's physical interfaces", "노드의 물리 인터페이스가 보낸 바이트입니다"],
    [
        "received by the InfiniBand and RoCE ports that sysfs shows here, whoever used them: the whole device's, also from within a container; collectives do not pass /proc/net/dev",
        "여기 sysfs에 보이는 InfiniBand와 RoCE 포트가 받은 양이며 누가 썼는지 구분하지 않습니다. 컨테이너 안에서도 장치 전체의 값입니다. collective는 /proc/net/dev를 거치지 않습니다",
    ],
    ["sent by the same ports", "같은 포트가 보낸 양입니다"],
    // File systems.
    [
        "used space of the file system under /; under an overlay that is the node's partition, shared with everybody on it",
        "/ 아래 파일 시스템의 사용 공간입니다. overlay에서는 노드의 파티션이며 모두가 함께 씁니다",
    ],
    ["what the container wrote", "컨테이너가 쓴 양이 아닙니다"],
    [
        "used / (used + available to users), as df shows it",
        "사용 / (사용 + 사용자가 쓸 수 있는 양)이며 df와 같습니다",
    ],
    [
        "used / total: blocks reserved for root are left out",
        "사용 / 전체가 아닙니다. root에 예약된 블록은 제외합니다",
    ],
    ["space that an unprivileged user can still write", "일반 사용자가 더 쓸 수 있는 공간입니다"],
    [
        "used space of another file system that the job uses; label `shm` is /dev/shm",
        "작업이 쓰는 다른 파일 시스템의 사용 공간입니다. 라벨 `shm`은 /dev/shm입니다",
    ],
    ["the job's files alone", "작업의 파일만 센 값이 아닙니다"],
    ["used / (used + available to users)", "사용 / (사용 + 사용자가 쓸 수 있는 양)입니다"],
    // GPUs.
    [
        "share of the time in which at least one kernel ran on the GPU; the mean of all readings since the last sample",
        "GPU에서 커널이 하나라도 실행된 시간의 비율이며, 지난 샘플 이후 읽은 값의 평균입니다",
    ],
    [
        "how much of the GPU was used: one small kernel at a time is 100 %; MIG instances have none",
        "GPU를 얼마나 썼는지가 아닙니다. 작은 커널이 하나씩만 돌아도 100 %이며, MIG 인스턴스에는 이 값이 없습니다",
    ],
    [
        "device memory that can't be allocated any more, as MLflow counts it: every process of everybody, and what the driver reserves; of a MIG instance its own",
        "더 할당할 수 없는 GPU 메모리이며 MLflow의 계산과 같습니다. 모두의 모든 프로세스와 드라이버 예약분을 포함하고, MIG 인스턴스는 자신의 값입니다",
    ],
    [
        "tensors: frameworks keep what they freed; nor nvidia-smi's memory.used, which leaves the reserved part out",
        "텐서의 크기가 아닙니다. 프레임워크는 해제한 메모리를 계속 갖고 있습니다. 예약분을 뺀 nvidia-smi의 memory.used와도 다릅니다",
    ],
    [
        "gpu_<i>_memory_usage_megabytes relative to the device's memory",
        "GPU 메모리에 대한 gpu_<i>_memory_usage_megabytes의 비율입니다",
    ],
    [
        "power of the board, memory included; a window's maximum goes out as gpu_<i>_power_usage_watts_max",
        "메모리를 포함한 보드의 전력입니다. 구간의 최댓값은 gpu_<i>_power_usage_watts_max로 전달됩니다",
    ],
    [
        "under MIG, where it is gpu_<i>_board_power_usage_watts",
        "MIG에서는 이 값이 아니라 gpu_<i>_board_power_usage_watts입니다",
    ],
    ["power relative to the limit that is enforced", "적용 중인 한도에 대한 전력의 비율입니다"],
    [
        "power of the whole board of which a MIG instance is a part, other tenants included",
        "MIG 인스턴스가 속한 보드 전체의 전력이며 다른 사용자를 포함합니다",
    ],
    ["the instance's: nobody measures that", "인스턴스의 값이 아닙니다. 인스턴스의 전력은 측정되지 않습니다"],
    ["power limit that is enforced", "적용 중인 전력 한도입니다"],
    ["device memory that driver and firmware keep", "드라이버와 펌웨어가 갖고 있는 GPU 메모리입니다"],
    [
        "device memory of this job's processes, where the driver lists them by pids of this namespace",
        "이 작업의 프로세스가 쓰는 GPU 메모리입니다. 드라이버가 이 네임스페이스의 pid로 알려 줄 때만 있습니다",
    ],
    [
        "the whole: contexts of others and reserved memory are left out",
        "전체가 아닙니다. 다른 프로세스의 컨텍스트와 예약된 메모리는 제외합니다",
    ],
    [
        "processes with a context on the GPU, of this job and of others",
        "GPU에 컨텍스트가 있는 프로세스 수이며 이 작업과 다른 작업을 모두 셉니다",
    ],
    [
        "share of the time in which device memory was read or written",
        "GPU 메모리를 읽거나 쓴 시간의 비율입니다",
    ],
    ["how full the memory is", "메모리가 얼마나 찼는지가 아닙니다"],
    ["clock of the multiprocessors", "멀티프로세서의 클럭입니다"],
    ["highest clock of the multiprocessors", "멀티프로세서의 최고 클럭입니다"],
    ["temperature of the GPU", "GPU의 온도입니다"],
    [
        "share of the readings in which the power limit held the clocks down",
        "전력 한도 때문에 클럭이 낮아진 비율입니다(읽은 횟수 기준)",
    ],
    [
        "a fault at full load: the limit is there to be met",
        "최대 부하에서는 문제가 아닙니다. 한도는 도달하라고 있는 것입니다",
    ],
    [
        "share of the readings in which heat held the clocks down",
        "열 때문에 클럭이 낮아진 비율입니다(읽은 횟수 기준)",
    ],
    [
        "share of the readings in which the hardware itself held the clocks down: heat, power supply or a power brake from outside",
        "하드웨어가 스스로 클럭을 낮춘 비율입니다(읽은 횟수 기준). 열, 전원, 외부의 power brake가 원인입니다",
    ],
    ["bytes that the GPU received over PCIe", "GPU가 PCIe로 받은 바이트입니다"],
    ["bytes that the GPU sent over PCIe", "GPU가 PCIe로 보낸 바이트입니다"],
    ["NVLink traffic", "NVLink 트래픽이 아닙니다"],
    [
        "memory errors that were corrected since the driver was loaded",
        "드라이버를 올린 이후 정정된 메모리 오류 수입니다",
    ],
    [
        "memory errors that were not corrected since the driver was loaded; each one is an event in the store",
        "드라이버를 올린 이후 정정되지 않은 메모리 오류 수입니다. 하나하나가 기록의 이벤트입니다",
    ],
    // Processes and the training.
    [
        "resident memory summed over the rank's process tree; pages that processes share are counted once per process",
        "랭크의 프로세스 트리에서 상주 메모리를 더한 값입니다. 공유 페이지는 프로세스마다 한 번씩 셉니다",
    ],
    [
        "the container's memory: pages that processes share count several times, page cache not at all",
        "컨테이너의 메모리가 아닙니다. 공유 페이지는 여러 번 세고 페이지 캐시는 세지 않습니다",
    ],
    [
        "resident memory with shared pages divided among their users; only with --pss, since it stalls the target's mmap",
        "공유 페이지를 사용하는 프로세스 수로 나누어 더한 상주 메모리입니다. 대상의 mmap을 멈추게 하므로 --pss일 때만 읽습니다",
    ],
    [
        "CPU time of the process tree per second, short-lived children included",
        "프로세스 트리가 1초에 쓴 CPU 시간이며 짧게 산 자식 프로세스도 포함합니다",
    ],
    [
        "the container's, where other processes run in it",
        "컨테이너에서 다른 프로세스도 실행되면 컨테이너의 값과 다릅니다",
    ],
    ["processes in the tree", "트리의 프로세스 수입니다"],
    ["threads in the tree", "트리의 스레드 수입니다"],
    [
        "bytes that read calls returned: page cache, network file systems, pipes and sockets included",
        "read 호출이 돌려준 바이트입니다(페이지 캐시, 네트워크 파일 시스템, 파이프, 소켓 포함)",
    ],
    ["disk traffic", "디스크 트래픽이 아닙니다"],
    [
        "bytes handed to write calls, whatever they went to",
        "write 호출에 넘긴 바이트이며 어디로 갔는지는 구분하지 않습니다",
    ],
    [
        "step of the training: the newest that was marked before the reading; where nothing is marked, that of the newest point that was logged at or before the window's last reading: written by rank 0 alone, after the job's end, at the same times and steps as its other series",
        "학습 스텝입니다. 읽기 전에 마지막으로 표시한 스텝이며, 표시가 없으면 구간의 마지막 읽기 이전에 마지막으로 기록된 지표의 스텝입니다. 이 경우 작업이 끝난 뒤 랭크 0만 다른 시리즈와 같은 시각과 스텝에 씁니다",
    ],
    [
        "the step of the other series, which is seconds; nor exact between two logged points: it stays at what was logged last",
        "초를 뜻하는 다른 시리즈의 스텝이 아닙니다. 기록된 두 점 사이에서는 정확하지 않고 마지막으로 기록된 값을 유지합니다",
    ],
    [
        "epoch of the training: the newest that was marked before the reading",
        "학습 에폭이며, 읽기 전에 마지막으로 표시한 값입니다",
    ],
];
