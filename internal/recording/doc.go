// Package recording is the flight recorder of a consumer. The package keeps the last events and
// actions of the consumer's machine in a ring of limited size. The actions of the machine
// depend only on its events, so a recording from production can be replayed like a test.
//
// A recording consists of lines of JSON. The ring consists of segments. Each segment begins
// with a picture of the machine's whole state, so the oldest segment can be dropped at any
// time. A step is a line with the time and the event, and a line with the actions, which a
// replay compares. Both are the machine's own types, written by reflection (write.go,
// read.go), so that no field can be forgotten.
//
// A recording contains only what the machine knows about a message. Unless ids are requested,
// identity, source, stream and fingerprint are replaced by hashes, whose seed is lost when the
// process ends. Of an error, the recording says only that there was one.
package recording
