// Package identity finds what makes two deliveries copies of one message, and
// what tells their contents apart.
//
// An Identity finds the producer's name and the message's id: CloudEvents, By
// with selectors ("header:message-id", "body:/order/id"), or Func. It comes from
// the producer, never from the broker: coordinates, times and topics are refused,
// with the reason. A message without a usable identity is never processed and
// never dropped.
//
// A Fingerprinter recognises content (FingerprintBody, FingerprintOf), so that
// other content under an identity that was seen is a conflict and no duplicate.
package identity
