// Package handlertest runs a handler of consumer.New with failures and compares its effects with those of an
// undisturbed run. Package semeltest runs it for tests in Go, and the command semel for the handlers of a policy. The
// package does not import testing, because the command imports it.
package handlertest
