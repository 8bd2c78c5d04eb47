import { describe, expect, test } from '@jest/globals';
import { createDigestAuthorization, parseDigestChallenge } from './digest.ts';

describe('a challenge', () => {
  test('is read as monero-wallet-rpc sends it, of two the one with MD5', () => {
    const nonce = 'FYF2W4P1elQ+bjOHig9H3A==';
    const header = (algorithm: string) =>
      `Digest qop="auth",algorithm=${algorithm},realm="monero-rpc",nonce="${nonce}",stale=false`;
    expect(parseDigestChallenge([header('MD5-sess'), header('MD5')])).toEqual({ realm: 'monero-rpc', nonce });
    expect(parseDigestChallenge(header('MD5'))).toEqual({ realm: 'monero-rpc', nonce });
  });

  test('of no algorithm is one of MD5, and one of several qualities can be met', () => {
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
  ])('that cannot be met is none: %p', (header) => {
    expect(parseDigestChallenge(header)).toBeUndefined();
  });
});

describe('a proof', () => {
  const challenge = { realm: 'http-auth@example.org', nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v' };
  const cnonce = 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ';

  test('is that of the example in RFC 7616', () => {
    const proved = { method: 'GET', path: '/dir/index.html', count: 1, cnonce };
    const proof = createDigestAuthorization('Mufasa:Circle of Life', challenge, proved);
    expect(proof).toContain('response="8ca523f5e9506fed4657c9700eebdbec"');
    expect(proof).toContain(', nc=00000001');
    expect(proof).not.toContain('Circle');
  });

  test('differs with each request, and a password may have colons', () => {
    const proof = (login: string, count: number) =>
      /response="(\w+)"/.exec(
        createDigestAuthorization(login, challenge, { method: 'POST', path: '/', count, cnonce }),
      )?.[1];
    expect(new Set([proof('a:b:c', 1), proof('a:b:c', 2), proof('a:b', 1)]).size).toBe(3);
  });
});
