// Package webhook receives webhooks. A [Receiver] is both an http.Handler and the source of a consumer. The
// Receiver checks the signature of a request over its raw bytes, and passes the message to the consumer.
// After the consumer has committed the row in the inbox, or has recognised a duplicate, the Receiver answers
// 2xx. If the process dies between the commit and the answer, the provider sends the request again, and the
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
// A message contains the data that the provider has signed: the body and, depending on the scheme, some
// headers. Anybody who has seen a signed body once can send that body again with other headers. So an
// unsigned header is copied into a message only if [Config.Unsigned] names the header, with a reason.
//
// # Server limits
//
// A Receiver limits the size of bodies and the requests in memory, but not connections. Set
// ReadTimeout, ReadHeaderTimeout and MaxHeaderBytes of http.Server.
package webhook
