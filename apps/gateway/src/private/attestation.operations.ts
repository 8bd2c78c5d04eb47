import { jsonContent, nameSchema, type OperationOptions } from '../openapi/operation.ts';
import { nullable, object, STRING, text, withExtraFields } from '../openapi/schemas.ts';
import { AttestationQuery } from './attestation.requests.ts';

/** The bundle that Tinfoil's enclaves return; other enclaves may add fields. */
const FIELDS = {
  domain: STRING,
  enclaveAttestationReport: withExtraFields(
    object({
      format: text('The format of the report; a `simulated` report is no evidence'),
      body: text('The report in base64'),
    }),
  ),
  digest: text('The SHA-256 digest of the measured release'),
  sigstoreBundle: nullable(
    withExtraFields({ type: 'object', description: 'The signature of the release and of its measurement' }),
  ),
  vcek: text("The certificate of the processor's key in base64"),
  enclaveCert: text('The certificate of the enclave in PEM'),
};

const Attestation = nameSchema('Attestation', {
  ...withExtraFields(object(FIELDS, Object.keys(FIELDS))),
  description: 'The evidence as the enclave returned it. The gateway does not verify it; the client must do so.',
});

export const getAttestation: OperationOptions = {
  id: 'getAttestation',
  tag: 'Private models',
  summary: 'Returns the attestation evidence for the enclave and the key of a private model',
  description: [
    'For clients that encrypt requests themselves, such as the local proxy. ',
    'The evidence is at most 30 seconds old, or one second with `Cache-Control: no-cache`: send this header after a 422.',
  ].join(''),
  auth: 'public',
  query: AttestationQuery,
  example: { model: 'private/gpt-oss-120b' },
  response: jsonContent(Attestation),
  errors: [404, 410, 429, 502, 503, 504],
};
