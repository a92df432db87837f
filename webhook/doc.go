// Package webhook receives webhooks. A [Receiver] is an http.Handler and the source of a
// consumer in one: it checks a request's signature over its raw bytes, hands the message to
// the consumer, and answers with 2xx when the consumer has committed what became of it: its
// row in the inbox, or that it is a copy of what was there. A process that dies between the
// commit and the answer is asked again by the provider, and the repeated request is a
// duplicate. It needs nothing but the standard library.
//
//	hooks, err := webhook.New(webhook.Config{Name: "github", Scheme: webhook.GitHub(), Secrets: []string{secret}})
//	…
//	mux.Handle("POST /hooks/github", hooks)
//	received, err := consumer.New(store, handle, consumer.Config{Source: hooks, Strategy: consumer.StrategyInbox, AckPoint: consumer.AckAfterReceipt, Lanes: consumer.LanesNone, …})
//	…
//	go received.Run(ctx)
//
// # What is trusted
//
// A message has what was signed: its body and, where the scheme signs more, the headers
// that it signs. Every other header could be anybody's who once saw a signed body. So a
// message has one only if [Config.Unsigned] names it, with a reason.
//
// # Who runs the server
//
// Limit it: give http.Server a ReadTimeout, a ReadHeaderTimeout and MaxHeaderBytes. A
// Receiver bounds what a body may be long and what it has in hand, and cannot bound
// connections.
package webhook
