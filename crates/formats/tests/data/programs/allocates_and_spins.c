#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *kept[4096];
static int count;

__attribute__((noinline)) void small_blocks(void) {
  for (int i = 0; i < 2000; i++) kept[count++] = memset(malloc(600), 1, 600);
}
__attribute__((noinline)) void large_blocks(void) {
  for (int i = 0; i < 20; i++) kept[count++] = memset(malloc(300000), 1, 300000);
}
__attribute__((noinline)) void given_back(void) {
  for (int i = 0; i < 500; i++) free(memset(malloc(5000), 1, 5000));
}
__attribute__((noinline)) double spin(double seconds) {
  volatile double sum = 0;
  clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
  while (clock() < end) for (int i = 1; i < 10000; i++) sum += 1.0 / i;
  return sum;
}
__attribute__((noinline)) double caller(void) { return spin(0.3) + 1; }
int main(void) {
  small_blocks();
  large_blocks();
  given_back();
  double sum = caller() + spin(0.2);
  return sum < 0;
}
