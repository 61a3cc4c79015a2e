/* Prints how many seconds one in-place MPI_Allgather takes, as the mean of so
 * many rounds on the slowest rank:
 *
 *   allgather BYTES ROUNDS
 *
 * BYTES is what each rank sends. A round before the first warms up, and every
 * byte that it gathered is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned char pattern(int rank, long i) { return (unsigned char)(i >> 16) ^ (unsigned char)i ^ (unsigned char)(rank * 37 + 1); }

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long bytes = argc > 1 ? atol(argv[1]) : 0, rounds = argc > 2 ? atol(argv[2]) : 0;
  if (bytes < 1 || bytes > 1L << 30 || rounds < 1) {
    fprintf(stderr, "usage: allgather BYTES ROUNDS, 1 to 2^30 bytes\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  unsigned char *all = malloc((size_t)ranks * bytes);
  if (!all) MPI_Abort(MPI_COMM_WORLD, 3);
  for (long i = 0; i < ranks * bytes; i++) all[i] = 0;
  for (long i = 0; i < bytes; i++) all[rank * bytes + i] = pattern(rank, i);

  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; from++)
    for (long i = 0; i < bytes; i++)
      if (all[from * bytes + i] != pattern(from, i)) {
        fprintf(stderr, "byte %ld from rank %d is wrong on rank %d\n", i, from, rank);
        MPI_Abort(MPI_COMM_WORLD, 4);
      }

  MPI_Barrier(MPI_COMM_WORLD);
  double began = MPI_Wtime();
  for (long n = 0; n < rounds; n++)
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
  double took = (MPI_Wtime() - began) / rounds, slowest;
  MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.9f\n", slowest);
  free(all);
  MPI_Finalize();
  return 0;
}
