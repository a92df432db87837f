// Package recording is the flight recorder of a consumer: it records the last actions of the consumer. The package
// keeps the last events and actions of the consumer's machine in a ring of limited size. The actions of the machine
// depend only on its events, so the steps of a recording from production can be replayed in a test.
//
// A recording consists of lines of JSON. The ring is divided into segments. Each segment begins with a snapshot of the
// whole state of the machine (called a picture in the code), so that the oldest segment can be dropped at any time. A
// step has two lines: one line with the time and the event, and one line with the actions, which a replay compares.
// Events and actions are written with the machine's own types, by reflection (write.go, read.go), so that no field can
// be forgotten.
//
// A recording contains only the data of a message that the machine uses. Unless ids are requested, identity, source,
// stream and fingerprint are replaced by hashes, whose seed is lost when the process ends. The text of an error is not
// recorded.
package recording
