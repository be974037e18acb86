// SPDX-License-Identifier: GPL-2.0-or-later

package endpoint

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"
)

// What both sides of goodput and rtc speak, and the name that clients ask for.
const alpn, host = "pemi-test", "pemi-test"

// Certificate makes one for this run only.
func Certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		DNSNames:     []string{host},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// ClientTLS believes every certificate: this is a test tool, and the server's
// certificate is new in every run.
func ClientTLS() *tls.Config {
	return &tls.Config{ServerName: host, NextProtos: []string{alpn}, InsecureSkipVerify: true}
}
