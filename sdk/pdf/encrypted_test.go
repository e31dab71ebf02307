package pdf_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/pdf"
	"github.com/toolhost/toolhost/sdk/pdf/pdftest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// padding completes passwords (PDF 32000-1:2008, 7.6.3.3).
const padding = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

const (
	fileID = "0123456789abcdef"
	owner  = "an entry of thirty-two bytes....."
)

// encryption encrypts with a user's password, in revision 3 or 4 with 128 bits.
type encryption struct {
	key []byte
	aes bool
}

func newEncryption(password string, useAES bool) *encryption {
	sum := md5.Sum([]byte((password + padding)[:32] + owner[:32] + "\xFC\xFF\xFF\xFF" + fileID))
	for range 50 {
		sum = md5.Sum(sum[:])
	}
	return &encryption{sum[:], useAES}
}

// entry returns the encryption dictionary.
func (e *encryption) entry() string {
	sum := md5.Sum([]byte(padding + fileID))
	check := sum[:]
	for i := range 20 {
		key := bytes.Clone(e.key)
		for j := range key {
			key[j] ^= byte(i)
		}
		c, _ := rc4.NewCipher(key) // 16 bytes are a key
		c.XORKeyStream(check, check)
	}
	method := "/V 2 /R 3"
	if e.aes {
		method = "/V 4 /R 4 /CF << /StdCF << /CFM /AESV2 /AuthEvent /DocOpen /Length 16 >> >> /StmF /StdCF /StrF /StdCF"
	}
	return fmt.Sprintf("/Encrypt << /Filter /Standard %s /Length 128 /P -4 /O <%x> /U <%x%032d> >> /ID [<%x> <%x>]", method, owner[:32], check, 0, fileID, fileID)
}

// encrypt encrypts the data of an object.
func (e *encryption) encrypt(object uint32, data []byte) []byte {
	salted := binary.LittleEndian.AppendUint32(bytes.Clone(e.key), object)[:len(e.key)+3]
	salted = append(salted, 0, 0)
	if e.aes {
		salted = append(salted, "sAlT"...)
	}
	key := md5.Sum(salted)
	if !e.aes {
		c, _ := rc4.NewCipher(key[:])
		out := make([]byte, len(data))
		c.XORKeyStream(out, data)
		return out
	}
	n := aes.BlockSize - len(data)%aes.BlockSize
	data = append(bytes.Clone(data), bytes.Repeat([]byte{byte(n)}, n)...)
	block, _ := aes.NewCipher(key[:])
	iv := []byte("initialization..")
	out := make([]byte, len(data))
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, data)
	return append(iv, out...)
}

// A PDF that is encrypted with an empty password is read. Others have an error that says why not.
func TestEncrypted(t *testing.T) {
	content := []byte("BT /F1 10 Tf (a secret) Tj ET")
	body := func(e *encryption, change ...string) []byte {
		return pdftest.MakeWith(strings.NewReplacer(change...).Replace(e.entry()), pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("", e.encrypt(4, content)), pdftest.Font)
	}
	for _, tt := range []struct {
		name, want, err string
		body            []byte
	}{
		{name: "RC4", body: body(newEncryption("", false)), want: "a secret"},
		{name: "AES", body: body(newEncryption("", true)), want: "a secret"},
		{name: "a password", body: body(newEncryption("secret", true)), err: "the PDF is encrypted and needs a password"},
		{name: "AES with 256 bits", body: body(newEncryption("", true), "/V 4 /R 4", "/V 5 /R 6", "/Length 128", "/Length 256"), err: "the PDF is encrypted in an unsupported way: only RC4 and AES with keys of 128 bits can be read"},
		{name: "another version", body: body(newEncryption("", true), "/V 4 /R 4", "/V 3 /R 4"), err: "the PDF is encrypted in an unsupported way: only RC4 and AES with keys of 128 bits can be read"},
		{name: "a key of 40 bits", body: shortKey(content), err: "the PDF is encrypted in an unsupported way: only RC4 and AES with keys of 128 bits can be read"},
		{name: "no keys", body: body(newEncryption("", true), "/O", "/X"), err: "the PDF is encrypted in an unsupported way: only RC4 and AES with keys of 128 bits can be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := pdf.Read(bytes.NewReader(tt.body), int64(len(tt.body)), pdf.Request{First: 1, Bytes: 1000})
			if tt.err != "" {
				if err == nil || tool.AsError(err).Message != tt.err {
					t.Errorf("Read = %+v, %v, want %q", d, err, tt.err)
				}
				return
			}
			if err != nil || len(d.Pages) != 1 || d.Pages[0].Text != tt.want {
				t.Errorf("Read = %+v, %v, want %q", d, err, tt.want)
			}
		})
	}
}

// shortKey returns a PDF that is encrypted in revision 2.
func shortKey(content []byte) []byte {
	sum := md5.Sum([]byte(padding + owner[:32] + "\xFC\xFF\xFF\xFF" + fileID))
	c, _ := rc4.NewCipher(sum[:5])
	check := []byte(padding)
	c.XORKeyStream(check, check)
	entry := fmt.Sprintf("/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%x> /U <%x> >> /ID [<%x> <%x>]", owner[:32], check, fileID, fileID)
	return pdftest.MakeWith(entry, pdftest.Catalog, pdftest.Tree, pdftest.OnePage, pdftest.Stream("", content), pdftest.Font)
}
