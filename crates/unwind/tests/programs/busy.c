/* Burns CPU in the C library: sorting by a callback, formatting, parsing, allocating, matching. */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int compare(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static double sum_of(char **words, int count)
{
	char line[100];
	double sum = 0;
	for (int i = 0; i < count; i++) {
		snprintf(line, sizeof line, "%08.3f|%s|%-12d", i / 7.0, words[i], i);
		sum += strtod(line, NULL);
	}
	return sum;
}

static double work(int depth)
{
	char *words[50], stamp[64];
	time_t now = depth * 86400;
	regmatch_t match[3];
	regex_t pattern;
	if (depth > 0)
		return work(depth - 1) + 1;
	for (int i = 0; i < 50; i++) {
		words[i] = malloc(16 + i);
		snprintf(words[i], 16, "w%d", i * 7919 % 1009);
	}
	qsort(words, 50, sizeof words[0], compare);
	double sum = sum_of(words, 50);
	if (regcomp(&pattern, "w(1+)(2|3)*", REG_EXTENDED) == 0) {
		for (int i = 0; i < 50; i++)
			sum += regexec(&pattern, words[i], 3, match, 0);
		regfree(&pattern);
	}
	strftime(stamp, sizeof stamp, "%A %d %B %Y", gmtime(&now));
	for (int i = 0; i < 50; i++)
		free(words[i]);
	return sum + stamp[0];
}

int main(void)
{
	puts("ready");
	fflush(stdout);
	for (volatile double sum = 0;;)
		sum = sum + work(5);
}
