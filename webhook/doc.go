// Package webhook receives webhooks. A [Receiver] is both an http.Handler and the source of a consumer:
// it checks the signature of a request over its raw bytes, passes the message to the consumer, and
// answers 2xx after the consumer has committed the row in the inbox or recognised a duplicate. If the
// process dies between the commit and the answer, the provider sends the request again, and the
// consumer recognises the duplicate. The package needs only the standard library.
//
//	hooks, err := webhook.New(webhook.Config{Name: "github", Scheme: webhook.GitHub(), Secrets: []string{secret}})
//	…
//	mux.Handle("POST /hooks/github", hooks)
//	received, err := consumer.New(store, handle, consumer.Config{Source: hooks, Strategy: consumer.StrategyInbox, AckOnReceipt: true, Lanes: consumer.LanesNone, …})
//	…
//	go received.Run(ctx)
//
// # What is trusted
//
// A message contains what the provider signed: the body and, depending on the scheme, some headers.
// Anybody who has seen a signed body once can send it again with other headers. Therefore a message
// contains an unsigned header only if [Config.Unsigned] names it, with a reason.
//
// # Server limits
//
// A Receiver limits the size of bodies and the requests in memory, but not connections. Set
// ReadTimeout, ReadHeaderTimeout and MaxHeaderBytes of http.Server.
package webhook
