// Package file reads messages from files and from standard input, one JSON
// text a line. It needs nothing but the standard library.
//
// A [Source] reads one regular file, to its end or, with [Options.Follow], for
// ever. It has one lane. How far it is done is kept in the consumer's store, so
// a consumer that starts again goes on after the last line before which
// everything is settled. A lost position costs no message: lines come again and
// are duplicates.
//
// A [Stream] reads standard input or any other io.Reader. It has no position:
// what was not settled when the process ended is gone with the stream, unless
// whoever wrote it writes it again.
//
// # Lines
//
// A line ends with LF or CRLF. A byte-order mark at the start of the file and
// lines of nothing but spaces and tabs are passed over. A last line without its
// line end may still be written: at the end of the data it is read only if it is
// a complete JSON object or array, which nothing that follows could make another
// message of. Anything else is left unread, and [Options.Notice] is told of its
// first byte; the position stays before it, so that it is read when it is there.
// A followed file waits for the line end in any case, until another file has its
// name. A line is never repaired. One that is not JSON, is not UTF-8, has a lone
// surrogate or repeats a member name is delivered with semel.ReasonMalformed
// and its raw bytes; one over [Options.MaxLine] with semel.ReasonTooLarge, its
// first 64 KiB and, in the header [HeaderLength], its length. The header
// [HeaderDetail] says why. See [Format] for what a line becomes. Lines are
// decoded by the consumer; who calls Fetch without one calls source.Delivery's
// Decode before looking at a message.
//
// # Replaced and truncated files
//
// A position carries a hash of what stands before it. Where that does not fit
// the file, it is another file, which is read from its start. While a file is
// followed, a new file under its name is read when the old one is read to its
// end; rename it, and let the writer end there, before you put a new one in its
// place. What is cut off a file before it was read is gone. [Options.Notice] is
// told of each of these.
package file
