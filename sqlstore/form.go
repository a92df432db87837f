package sqlstore

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
)

func storedID(id []byte) (key, long []byte) { return sqlform.ID(id) }

func originalID(key, long []byte) (string, bool) { return sqlform.OriginalID(key, long) }

func sealed(m *semel.Message) ([]byte, error) { return sqlform.Sealed(m) }

func unseal(data []byte, m *semel.Message) error { return sqlform.Unseal(data, m) }

func plain(s string) string { return sqlform.Plain(s) }

func errorText(s string) string { return sqlform.ErrorText(s) }
