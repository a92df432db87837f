// Package message makes messages of records and records of messages.
package message
