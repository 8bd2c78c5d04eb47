/** The attacker's web server: a page for each attack, and the resources that the pages use. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { ATTACKS, renderPage, WORKER } from './attacks.ts';

/** Makes the browser cache the pages, so that they are available when their host name leads to another server. */
const CACHE_CONTROL = 'max-age=86400';

export async function startAttacker(host: string, port: number): Promise<Server> {
  const server = createServer(handleRequest);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return server;
}

export function getPagePath(attack: string): string {
  return `/pages/${Object.keys(ATTACKS).indexOf(attack)}`;
}

function handleRequest(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  const url = new URL(request.url ?? '/', 'http://attacker');
  const to = url.searchParams.get('to') ?? '';
  const [, page] = /^\/pages\/(\d+)$/.exec(url.pathname) ?? [];
  if (page !== undefined) {
    const script = Object.values(ATTACKS)[Number(page)] ?? '';
    response.writeHead(200, { 'content-type': 'text/html', 'cache-control': CACHE_CONTROL }).end(renderPage(script));
  } else if (url.pathname === '/307') response.writeHead(307, { location: to }).end();
  else if (url.pathname === '/worker.js') response.writeHead(200, { 'content-type': 'text/javascript' }).end(WORKER);
  else if (url.pathname === '/reports') {
    // The browser reports the violation of the policy to the target.
    const policy = `img-src 'none'; report-uri ${to}`;
    const headers = { 'content-type': 'text/html', 'content-security-policy': policy };
    response.writeHead(200, headers).end('<!doctype html><img src="/forbidden.png">');
  } else response.writeHead(404, { 'cache-control': 'no-store' }).end();
}
