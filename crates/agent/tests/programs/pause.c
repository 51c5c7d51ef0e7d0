/* Holds the namespaces of a pod, as the pause image of Kubernetes does. */
#include <unistd.h>

int main(void)
{
	for (;;)
		pause();
}
