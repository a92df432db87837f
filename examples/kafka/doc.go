// Package example processes payments from Kafka into PostgreSQL. The example has a policy, a producer, and a
// consumer in Go; see README.md.
package example
