// Package httphandler makes a handler of an HTTP endpoint: each message is one
// request, and the answer's status says what becomes of it.
//
// The request is a CloudEvent in binary mode, with the message's idempotency key,
// which is the same at every attempt, unless the endpoint knows none. Nothing but the
// endpoint decides what is done once: a call whose answer was lost is made again, under
// the same key.
//
//	2xx                           it is done
//	425 and 429                   try again, no sooner than Retry-After says
//	408, 409 and 5xx              the same, and the outcome is unknown: a server that failed
//	                              may have failed after it was done. What may be lost is
//	                              tried again after 408, 409, 501, 503, 505 and 511 only
//	any other                     waiting cannot mend it; redirects are not followed
//
// With Config.Effects the body of a 2xx may say what is to be written into Semel's store;
// see Handler.Ask. Without a body there is nothing to write.
//
// An answer counts when it has come whole, or with more than its first MiB. Where it
// has not, because of a time-out or of a connection that broke, nobody knows whether
// the call was carried out: an unknown outcome. Where nothing was sent, it is known.
// Both are tried again, and the error says which it was.
//
// Errors name the endpoint by its host and never show the rest of its URL, a header,
// a secret, or what was answered, but for a status and the title of a problem
// (RFC 9457), which says the same each time.
package httphandler
