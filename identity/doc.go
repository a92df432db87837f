// Package identity defines when two deliveries are copies of one message, and how their contents are compared.
//
// An Identity finds the producer's name and the message's id. An identity is of one of three kinds: CloudEvents, By
// with selectors ("header:message-id", "body:/order/id"), and Func. The values of an identity must come from the
// producer. Validate rejects coordinates of the broker, times and topics, with an explanation. A message without a
// usable identity is never processed and never dropped.
//
// A Fingerprinter identifies content (FingerprintBody, FingerprintOf). So a message with a known identity but
// other content is a conflict and not a duplicate.
package identity
