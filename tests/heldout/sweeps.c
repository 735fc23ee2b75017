// Relaxation of a long row in OpenMP: the threads meet after each sweep.
void relax(double *to, double *from, long length, int sweeps) {
#pragma omp parallel
    for (int sweep = 0; sweep < sweeps; sweep++) {
        double *a = sweep % 2 ? to : from, *b = sweep % 2 ? from : to;
#pragma omp for
        for (long i = 1; i < length - 1; i++)
            b[i] = 0.25 * a[i - 1] + 0.5 * a[i] + 0.25 * a[i + 1];
    }
}
