import { jsonContent, nameSchema, type OperationOptions } from '../openapi/operation.ts';
import { nullable, object, STRING, text, withExtraFields } from '../openapi/schemas.ts';
import { AttestationQuery } from './attestation.requests.ts';

/** As Tinfoil's enclaves give it; others may add to it. */
const FIELDS = {
  domain: STRING,
  enclaveAttestationReport: withExtraFields(
    object({
      format: text('How the report is to be read; `simulated` proves nothing'),
      body: text('The report, in base64'),
    }),
  ),
  digest: text('The SHA-256 of the release that is measured'),
  sigstoreBundle: nullable(
    withExtraFields({ type: 'object', description: 'Who signed that release, and its measurement' }),
  ),
  vcek: text("The certificate of the processor's key, in base64"),
  enclaveCert: text('The certificate of the enclave, in PEM'),
};

const Attestation = nameSchema('Attestation', {
  ...withExtraFields(object(FIELDS, Object.keys(FIELDS))),
  description: 'The evidence as the enclave gives it. It is not checked here: its reader must not trust this service.',
});

export const getAttestation: OperationOptions = {
  id: 'getAttestation',
  tag: 'Private models',
  summary: 'Returns the evidence of what the enclave of a private model is, and of its key',
  description: [
    'For programs that encrypt requests themselves; the local proxy is one. ',
    'It may be 30 seconds old, or one second where the request says `Cache-Control: no-cache`: ask so again after a 422.',
  ].join(''),
  auth: 'public',
  query: AttestationQuery,
  example: { model: 'private/gpt-oss-120b' },
  response: jsonContent(Attestation),
  errors: [404, 429, 502, 503, 504],
};
