// Package adoption holds a table of processed messages that other code made to
// what marking in it needs, and says what statements write there. A store that
// adopted a table differs from others in its statements and in what it asks here;
// it is for PostgreSQL.
package adoption
