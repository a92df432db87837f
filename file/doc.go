// Package file reads messages from files and from standard input, one JSON text per line. The package needs
// only the standard library.
//
// A [Source] reads one regular file to its end. With [Options.Follow], the Source waits at the end for further lines. A
// Source has one lane. The position of a Source is kept in the consumer's store: a consumer that restarts continues
// after the last line up to which all lines are acked. If the position is lost, lines are delivered again as
// duplicates; no message is lost.
//
// A [Stream] reads standard input or any other io.Reader. A Stream has no position: lines that were not acked when the
// process ended are lost, unless their writer sends them again.
//
// # Lines
//
//   - A line ends with LF or CRLF. A byte-order mark at the start of the file is skipped, and so are lines
//     of only spaces and tabs.
//   - A last line without a line end may be incomplete. At the end of the data, a last line without a line end is read
//     only if it is a complete JSON object or array. If the last line is not complete, it stays unread,
//     [Options.Notice] reports its first byte, and the position stays before the line. A followed file always waits for
//     the line end, until another file takes its name.
//   - A line is never repaired. If a line is not JSON, is not UTF-8, has a lone surrogate or repeats a member name, the
//     line is delivered with semel.ReasonMalformed and its raw bytes. If a line is longer than [Options.MaxLine], the
//     line is delivered with semel.ReasonTooLarge and its first 64 KiB; the header [HeaderLength] contains its length.
//     For malformed and too long lines, the header [HeaderDetail] contains the reason.
//
// See [Format] for the conversion of a line to a message. The consumer decodes lines. Code that calls Fetch
// itself must call Decode of source.Delivery before it reads a message.
//
// # Replaced and truncated files
//
// A position contains a hash of the bytes before it. If a file has other bytes before the position, it is a different
// file and is read from its start. If a followed file is replaced, the old file is read to its end first. So rename the
// old file and let its writer finish before you create the new file. Lines that are cut off before they were read are
// lost. [Options.Notice] reports different, replaced and truncated files.
package file
