/** fal's storage, to which its clients upload pictures that a request brings: `rest.fal.ai`, and what it hands out. */
import { randomUUID } from 'node:crypto';
import { type Call, parseObject, Refusal, type Routes } from '../../router.ts';
import type { SandboxFile } from '../sandbox-file.ts';

/** The oldest is forgotten first. */
const MOST_FILES = 100;

export class FalStorage {
  private readonly files = new Map<string, SandboxFile>();

  /** @param assertKey throws where there is none */
  routes(assertKey: (call: Call) => void): Routes {
    return {
      'POST /fal-rest/storage/upload/initiate': async (call) => {
        assertKey(call);
        const { file_name: name, content_type: type } = parseObject(await call.text()) ?? {};
        if (typeof name !== 'string' || typeof type !== 'string')
          throw new Refusal(422, { detail: [{ loc: ['body', 'file_name'], msg: 'Field required', type: 'missing' }] });
        const id = `${randomUUID()}_${name.replace(/[^\w.-]/g, '_')}`;
        this.files.set(id, { type, bytes: Buffer.alloc(0) });
        const oldest = this.files.keys().next().value;
        if (this.files.size > MOST_FILES && oldest !== undefined) this.files.delete(oldest);
        const url = `http://${call.request.headers.host}/fal-media/uploads/${id}`;
        call.json(200, { upload_url: url, file_url: url });
      },
      'PUT /fal-media/uploads/:id': async (call) => {
        const { type } = this.known(call);
        this.files.set(call.parameter, { type, bytes: await call.body() });
        call.json(200, {});
      },
      'GET /fal-media/uploads/:id': (call) => {
        const { type, bytes } = this.known(call);
        call.bytes(200, type, bytes);
      },
    };
  }

  private known({ parameter }: Call): SandboxFile {
    const file = this.files.get(parameter);
    if (!file) throw new Refusal(404, { detail: 'Not Found' });
    return file;
  }
}
