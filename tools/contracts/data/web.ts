/** Searches and pages of the web. */

/** Firecrawl's OpenAPI document: https://github.com/firecrawl/firecrawl-docs, api-reference/v2-openapi.json */
export interface FirecrawlContracts {
  scrapeRequest: {
    url: string;
    /** The document has objects; the examples of https://docs.firecrawl.dev/features/scrape have names. */
    formats?: ('markdown' | 'summary' | 'html' | 'rawHtml' | 'links' | 'images' | 'screenshot')[];
    onlyMainContent?: boolean;
    includeTags?: string[];
    excludeTags?: string[];
    maxAge?: number;
    waitFor?: number;
    mobile?: boolean;
    skipTlsVerification?: boolean;
    timeout?: number;
    parsers?: ('pdf' | { type: 'pdf'; mode?: string; maxPages?: number })[];
    location?: { country?: string; languages?: string[] };
    removeBase64Images?: boolean;
    blockAds?: boolean;
    proxy?: 'basic' | 'enhanced' | 'auto';
    storeInCache?: boolean;
  };
  scrapeResponse: {
    success: boolean;
    data?: {
      markdown?: string;
      summary?: string | null;
      html?: string | null;
      rawHtml?: string | null;
      screenshot?: string | null;
      links?: string[];
      images?: string[];
      /** Also each `meta` element of the page. */
      metadata?: Record<string, unknown>;
      warning?: string | null;
    };
  };
  searchRequest: {
    query: string;
    limit?: number;
    sources?: ('web' | 'news' | 'images')[];
    tbs?: string;
    location?: string;
    country?: string;
    timeout?: number;
    ignoreInvalidURLs?: boolean;
  };
  searchResponse: {
    success: boolean;
    data: {
      /** `position`: https://docs.firecrawl.dev/features/search */
      web?: { title?: string; description?: string; url?: string; position?: number }[];
      images?: { title?: string; imageUrl?: string; imageWidth?: number; url?: string; position?: number }[];
      news?: { title?: string; snippet?: string; url?: string; date?: string; position?: number }[];
    };
    warning?: string | null;
    id?: string;
    creditsUsed?: number;
  };
  error: { success?: boolean; code?: string; error: string };
}

/** Serper has no document; its examples are at https://serper.dev/playground. */
interface SerperRequest {
  q: string;
  num?: number;
  page?: number;
  gl?: string;
  hl?: string;
  location?: string;
  autocorrect?: boolean;
  tbs?: string;
}

interface SerperResponse {
  /** The fields of the request, and `type` and `engine`. */
  searchParameters: Record<string, unknown>;
  credits?: number;
}

export interface SerperContracts {
  newsRequest: SerperRequest;
  newsResponse: SerperResponse & {
    news: {
      title: string;
      link: string;
      snippet?: string;
      date?: string;
      source?: string;
      imageUrl?: string;
      position?: number;
    }[];
  };
  shoppingRequest: SerperRequest;
  shoppingResponse: SerperResponse & {
    shopping: {
      title: string;
      source?: string;
      link?: string;
      price?: string;
      delivery?: string;
      imageUrl?: string;
      rating?: number;
      ratingCount?: number;
      offers?: string;
      productId?: string;
      position?: number;
    }[];
  };
  imagesRequest: SerperRequest;
  imagesResponse: SerperResponse & {
    images: {
      title: string;
      imageUrl: string;
      imageWidth?: number;
      imageHeight?: number;
      thumbnailUrl?: string;
      thumbnailWidth?: number;
      thumbnailHeight?: number;
      source?: string;
      domain?: string;
      link?: string;
      googleUrl?: string;
      position?: number;
    }[];
  };
  lensRequest: { url: string; gl?: string; hl?: string };
  lensResponse: SerperResponse & {
    organic: { title: string; source?: string; link?: string; imageUrl?: string; thumbnailUrl?: string }[];
  };
  error: { message: string; statusCode?: number };
}
