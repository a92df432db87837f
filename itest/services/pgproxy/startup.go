package pgproxy

import (
	"encoding/binary"
	"errors"
	"io"
)

// Codes that a client may send at first instead of a protocol version.
const (
	cancelRequest = 80877102
	sslRequest    = 80877103
	gssRequest    = 80877104
)

var errNotTheProtocol = errors.New("pgproxy: the client does not speak PostgreSQL's protocol")

// readStartup declines any requests for encryption, and then reads and returns a client's startup message with its
// code.
func readStartup(client io.ReadWriter) (message []byte, code int, err error) {
	for {
		message = make([]byte, 8)
		if _, err := io.ReadFull(client, message); err != nil {
			return nil, 0, err
		}
		code = length(message[4:])
		if code != sslRequest && code != gssRequest {
			break
		}
		if _, err := client.Write([]byte{'N'}); err != nil {
			return nil, 0, err
		}
	}
	size := length(message)
	if size < 8 || size > 1<<20 {
		return nil, 0, errNotTheProtocol
	}
	message = append(message, make([]byte, size-8)...)
	_, err = io.ReadFull(client, message[8:])
	return message, code, err
}

func length(b []byte) int { return int(int32(binary.BigEndian.Uint32(b))) }
