// Package adoption checks whether a table of processed messages that other code created can hold Semel's markers,
// and provides the columns and values for its statements. The package is for PostgreSQL.
package adoption
