/* The thread-local pointer of OTEP 4947 or of Elastic, in a program or a library. */
#define EXPORTED __attribute__((visibility("default")))

#ifdef ELASTIC
#define otel_thread_ctx_v1 elastic_apm_profiling_correlation_tls_v1
#endif

EXPORTED _Thread_local void *volatile otel_thread_ctx_v1;

#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name

#ifdef BY_ANOTHER_NAME
/* Nothing can take this symbol's place, so that relocations name the module alone. */
extern __attribute__((visibility("hidden"), alias(TEXT(otel_thread_ctx_v1)))) _Thread_local void *volatile pointer;
#else
#define pointer otel_thread_ctx_v1
#endif

EXPORTED void point_to_span(void *context)
{
	/* Before it and after it nothing moves. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	pointer = context;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}
