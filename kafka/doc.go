// Package kafka reads topics as a [semel.Source]: with partitions owned by a
// consumer group as lanes, and offsets that are committed only forward, only
// for what is settled, and only by the owner.
package kafka
