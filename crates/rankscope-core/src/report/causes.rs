//! What `diagnose` can name, as what follows "slow because": id, English, Korean.

pub static CAUSES: &[[&str; 3]] = &[
    [
        "cause_gpu_unused",
        "the GPU is not used: the job computes on the CPU",
        "GPU를 쓰지 않고 CPU에서 계산함",
    ],
    [
        "cause_input_workers_saturated",
        "the loader's workers are saturated, and no CPU is left for more of them",
        "데이터 로더 워커가 포화 상태이고 남은 CPU가 없음",
    ],
    [
        "cause_input_too_few_workers",
        "the loader has too few workers: they are saturated while CPUs are free",
        "데이터 로더 워커가 부족함 (포화 상태이고 CPU는 남아 있음)",
    ],
    [
        "cause_input_in_main_process",
        "data is loaded in the main process, between the steps",
        "메인 프로세스가 스텝 사이에 데이터를 직접 읽음",
    ],
    [
        "cause_input_worker_restart",
        "the loader's workers are started anew again and again",
        "데이터 로더 워커가 반복해서 새로 시작됨",
    ],
    ["cause_network_input_wait", "data comes too slowly over the network", "네트워크에서 오는 데이터가 느림"],
    [
        "cause_startup_import",
        "it is still starting: Python imports modules",
        "아직 시작 중 (Python 모듈 import)",
    ],
    [
        "cause_main_thread_python",
        "the main thread runs Python code while the GPU waits",
        "GPU가 기다리는 동안 메인 스레드가 Python 코드를 실행함",
    ],
    [
        "cause_main_thread_native",
        "the main thread runs native code while the GPU waits",
        "GPU가 기다리는 동안 메인 스레드가 네이티브 코드를 실행함",
    ],
    ["cause_cpu_quota_throttled", "its CPU quota throttles it", "CPU 쿼터로 스로틀링됨"],
    [
        "cause_threads_exceed_quota",
        "it has more busy threads than CPUs",
        "CPU보다 많은 스레드가 동시에 실행됨",
    ],
    ["cause_cpu_contention", "neighbours on the node take its CPUs", "노드의 다른 작업이 CPU를 차지함"],
    ["cause_storage_wait", "it waits for storage", "스토리지를 기다림"],
    [
        "cause_memory_reclaim",
        "memory is short: pages are dropped and read again",
        "메모리가 부족해 페이지를 버리고 다시 읽음",
    ],
    ["cause_jit_compile", "code is being compiled", "코드를 컴파일하는 중"],
    [
        "cause_gpu_clock_limited",
        "heat or a power limit holds the GPU's clock down",
        "발열이나 전력 한도로 GPU 클럭이 낮음",
    ],
    ["cause_gpu_shared", "others use the GPU too", "다른 작업이 같은 GPU를 사용함"],
    [
        "cause_transfer_bound",
        "copies between host and GPU take the time",
        "호스트와 GPU 사이의 복사에 시간이 걸림",
    ],
    [
        "cause_launch_bound",
        "kernels are too short: launching them takes longer than running them",
        "커널이 너무 짧아 실행보다 시작에 시간이 더 걸림",
    ],
    [
        "cause_frequent_sync",
        "it waits for the GPU too often, and the GPU waits in between",
        "GPU를 너무 자주 기다려서 그 사이 GPU가 쉼",
    ],
    [
        "cause_collective_wait",
        "ranks wait for each other in collectives",
        "랭크들이 collective에서 서로를 기다림",
    ],
    ["cause_straggler", "one rank is late, and the others wait for it", "한 랭크가 늦어 나머지가 기다림"],
    [
        "cause_checkpoint",
        "checkpoints are written while the training stands still",
        "학습을 멈춘 채 체크포인트를 저장함",
    ],
    ["cause_garbage_collection", "Python collects garbage", "Python 가비지 컬렉션이 실행됨"],
    [
        "cause_gil_contention",
        "the main thread waits for the GIL, which another thread holds",
        "메인 스레드가 다른 스레드가 잡은 GIL을 기다림",
    ],
    ["cause_lock_wait", "the main thread waits for a lock", "메인 스레드가 락을 기다림"],
    ["cause_hang", "nothing moves: it hangs", "멈춰 있음 (진행 없음)"],
    ["cause_process_idle", "it does nothing by its own choice", "스스로 아무 일도 하지 않음"],
];
