// Package httphandler makes a handler that calls an HTTP endpoint. Each message is one request. The status
// of the response decides the outcome of the message.
//
// The request is a CloudEvent in binary mode. The request has the message's idempotency key, which is the
// same for every attempt. If the policy says so, the request has no key. A call without a response is
// repeated with the same key, so only the endpoint can make sure that the call has one effect.
//
//	2xx                 done
//	425 and 429         retried, but not before the time in Retry-After
//	408, 409 and 5xx    the outcome is unknown, because a server can fail after the effect. The call
//	                    is retried. A call that may be lost is retried only after 408, 409, 501,
//	                    503, 505 and 511.
//	any other           permanent error; redirects are not followed
//
// With Config.Effects, the body of a 2xx response can list effects that Semel writes to its store; see
// Handler.Ask. A response without a body has no effects.
//
// A response counts if the response is complete, or if more than the first MiB has arrived. If a timeout or a
// broken connection ends the response earlier, the outcome is unknown: the endpoint may have carried out the
// call. If nothing was sent, the endpoint has not carried out the call. After a timeout or a broken
// connection, the call is retried, and the error says whether the endpoint may have carried out the call.
//
// Errors contain the host of the endpoint, but not the rest of the URL, headers, secrets or the response.
// Errors do contain the status and the title of a problem document (RFC 9457), which is the same for every
// occurrence.
package httphandler
