/** fal's storage (`rest.fal.ai`): clients upload the images of a request, which can then be downloaded. */
import { randomUUID } from 'node:crypto';
import { type Call, HttpError, parseObject, type Routes } from '../../router.ts';
import type { SandboxFile } from '../sandbox-file.ts';

/** Beyond this number the oldest file is removed. */
const MAX_FILES = 100;

export class FalStorage {
  private readonly files = new Map<string, SandboxFile>();

  /** @param assertKey throws an HttpError without a key */
  routes(assertKey: (call: Call) => void): Routes {
    return {
      'POST /fal-rest/storage/upload/initiate': async (call) => {
        assertKey(call);
        const { file_name: name, content_type: type } = parseObject(await call.readText()) ?? {};
        if (typeof name !== 'string' || typeof type !== 'string')
          throw new HttpError(422, {
            detail: [{ loc: ['body', 'file_name'], msg: 'Field required', type: 'missing' }],
          });
        const id = `${randomUUID()}_${name.replace(/[^\w.-]/g, '_')}`;
        this.files.set(id, { type, bytes: Buffer.alloc(0) });
        const oldest = this.files.keys().next().value;
        if (this.files.size > MAX_FILES && oldest !== undefined) this.files.delete(oldest);
        const url = `http://${call.request.headers.host}/fal-media/uploads/${id}`;
        call.sendJson(200, { upload_url: url, file_url: url });
      },
      'PUT /fal-media/uploads/:id': async (call) => {
        const { type } = this.getFile(call);
        this.files.set(call.parameter, { type, bytes: await call.readBody() });
        call.sendJson(200, {});
      },
      'GET /fal-media/uploads/:id': (call) => {
        const { type, bytes } = this.getFile(call);
        call.sendBytes(200, type, bytes);
      },
    };
  }

  private getFile({ parameter }: Call): SandboxFile {
    const file = this.files.get(parameter);
    if (!file) throw new HttpError(404, { detail: 'Not Found' });
    return file;
  }
}
