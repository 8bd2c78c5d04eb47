export { type SealedRequest, sealRequest } from './client.ts';
export { FrameSizeReader, MAX_FRAME_BYTES, TAG_BYTES } from './frames.ts';
export { type EnclaveKeys, encodeKeyConfig, generateKeys, parsePublicKey } from './keys.ts';
export {
  EhbpError,
  type EhbpErrorCode,
  ENCAPSULATED_KEY_HEADER,
  isHeaderValue,
  KEY_CONFIG_PROBLEM,
  KEY_CONFIG_TYPE,
  RESPONSE_NONCE_HEADER,
} from './protocol.ts';
export type { ResponseOpener, ResponseSealer } from './response.ts';
export { type OpenedRequest, openRequest } from './server.ts';
