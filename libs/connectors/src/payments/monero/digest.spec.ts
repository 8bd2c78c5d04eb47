import { describe, expect, test } from '@jest/globals';
import { createDigestAuthorization, parseDigestChallenge } from './digest.ts';

describe('a digest challenge', () => {
  test('is parsed in the format of monero-wallet-rpc; of several challenges the one with MD5 is selected', () => {
    const nonce = 'FYF2W4P1elQ+bjOHig9H3A==';
    const header = (algorithm: string) =>
      `Digest qop="auth",algorithm=${algorithm},realm="monero-rpc",nonce="${nonce}",stale=false`;
    expect(parseDigestChallenge([header('MD5-sess'), header('MD5')])).toEqual({ realm: 'monero-rpc', nonce });
    expect(parseDigestChallenge(header('MD5'))).toEqual({ realm: 'monero-rpc', nonce });
  });

  test('uses MD5 by default, and can have several qop values', () => {
    expect(parseDigestChallenge('Digest realm="a \\"b\\"", qop="auth,auth-int", nonce="n"')).toEqual({
      realm: 'a "b"',
      nonce: 'n',
    });
  });

  test.each([
    undefined,
    'Basic realm="x"',
    'Digest',
    'Digest realm="x"',
    'Digest realm="x", nonce="n", qop="auth-int"',
  ])('is undefined if it is missing or not supported: %p', (header) => {
    expect(parseDigestChallenge(header)).toBeUndefined();
  });
});

describe('a digest response', () => {
  const challenge = { realm: 'http-auth@example.org', nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v' };
  const cnonce = 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ';

  test('equals the example in RFC 7616', () => {
    const proved = { method: 'GET', path: '/dir/index.html', count: 1, cnonce };
    const proof = createDigestAuthorization('Mufasa:Circle of Life', challenge, proved);
    expect(proof).toContain('response="8ca523f5e9506fed4657c9700eebdbec"');
    expect(proof).toContain(', nc=00000001');
    expect(proof).not.toContain('Circle');
  });

  test('depends on the number of the request, and on all parts of a password with colons', () => {
    const proof = (login: string, count: number) =>
      /response="(\w+)"/.exec(
        createDigestAuthorization(login, challenge, { method: 'POST', path: '/', count, cnonce }),
      )?.[1];
    expect(new Set([proof('a:b:c', 1), proof('a:b:c', 2), proof('a:b', 1)]).size).toBe(3);
  });
});
