/** The URL at which clients reach the API. Empty until the API listens. */
export class PublicBaseUrl {
  url = '';
}
