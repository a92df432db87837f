// Package example processes payments from Kafka into PostgreSQL, with a policy, a producer and a consumer in Go. See
// README.md.
package example
