// Package example is payments from Kafka into PostgreSQL: a policy, a producer
// and a consumer in Go. README.md says how to run them.
package example
