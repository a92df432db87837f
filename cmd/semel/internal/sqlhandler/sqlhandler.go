// Package sqlhandler turns the SQL of a policy into a handler.
package sqlhandler
