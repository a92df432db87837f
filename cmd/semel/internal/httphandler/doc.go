// Package httphandler makes a handler of an HTTP endpoint: each message is one request, and the status
// of the response decides the outcome of the message.
//
// The request is a CloudEvent in binary mode. It carries the message's idempotency key, which is the
// same for every attempt, unless the endpoint supports no keys. Only the endpoint can make sure that a
// call has one effect: a call without a response is repeated with the same key.
//
//	2xx                 done
//	425 and 429         retried, no sooner than Retry-After says
//	408, 409 and 5xx    retried, and the outcome is unknown: a server that failed may have failed
//	                    after the effect. A call that may be lost is retried only after 408, 409,
//	                    501, 503, 505 and 511.
//	any other           permanent error; redirects are not followed
//
// With Config.Effects the body of a 2xx may list effects that Semel writes into its store; see
// Handler.Ask. Without a body no effects are written.
//
// A response counts if it is complete, or if more than its first MiB has arrived. If a timeout or a
// broken connection ends it earlier, the outcome is unknown: the call may have been carried out. If
// nothing was sent, the outcome is known. Both cases are retried, and the error names the case.
//
// Errors name the host of the endpoint. They never show the rest of its URL, a header, a secret or the
// response, except for the status and the title of a problem (RFC 9457), which is the same for every
// occurrence.
package httphandler
