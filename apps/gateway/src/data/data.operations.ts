import { jsonContent, type OperationOptions } from '../openapi/operation.ts';
import { LookUpFields, LookUpQuery, SocialQuery } from './data.requests.ts';
import { DataEndpointList, LOOKUP_PENDING, LOOKUP_RESULT } from './data.schemas.ts';

const ERRORS = [402, 404, 405, 409, 422, 429, 502, 504];
const CHARGED =
  'A call is charged with the price that `GET /v1/data/endpoints` says, and `x-cost-usd` repeats it. The answer is the vendor’s own; its refusals keep their status (400, 404, 422), and what fails is not charged unless its vendor charges for it.';
/** Longer requests for data are none. */
const MAX_BYTES = 1024 * 1024;

const params = (provider: string, action: string) => ({
  provider: { description: 'A class of vendors', example: provider },
  action: { description: 'What is looked up; it may have slashes', example: action },
});

export const listDataEndpoints: OperationOptions = {
  id: 'listDataEndpoints',
  tag: 'Data',
  summary: 'Lists what can be looked up, with the prices of now',
  auth: 'public',
  response: jsonContent(DataEndpointList),
};

export const runLookup: OperationOptions = {
  id: 'lookUp',
  tag: 'Data',
  summary: 'Looks something up',
  description: `The body is passed on as it is. ${CHARGED}`,
  auth: 'key',
  paid: true,
  payPerRequest: true,
  priced: true,
  maxBytes: MAX_BYTES,
  params: params('web', 'contents'),
  body: LookUpFields,
  example: { urls: ['https://example.com'], text: true },
  response: LOOKUP_RESULT,
  otherResponses: { 202: LOOKUP_PENDING },
  errors: ERRORS,
};

export const runLookupByQuery: OperationOptions = {
  id: 'lookUpByQuery',
  tag: 'Data',
  summary: 'Looks something up that is named in the query',
  description: `The query is passed on as it is. ${CHARGED}`,
  auth: 'key',
  paid: true,
  payPerRequest: true,
  priced: true,
  params: params('maps', 'place-details/partial'),
  query: LookUpQuery,
  example: { placeId: 'ChIJexampleexampleexample' },
  response: LOOKUP_RESULT,
  otherResponses: { 202: LOOKUP_PENDING },
  errors: ERRORS,
};

export const runSocialLookup: OperationOptions = {
  id: 'lookUpSocial',
  tag: 'Data',
  summary: 'Looks something up in a social network',
  description: `Posts, users and lists of X. The query is passed on as it is. ${CHARGED}`,
  auth: 'key',
  paid: true,
  payPerRequest: true,
  priced: true,
  params: { action: { description: 'What is looked up; it may have slashes', example: 'users/by/username' } },
  query: SocialQuery,
  example: { username: 'ada_example' },
  response: LOOKUP_RESULT,
  otherResponses: { 202: LOOKUP_PENDING },
  errors: ERRORS,
};
