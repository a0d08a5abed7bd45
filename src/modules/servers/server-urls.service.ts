import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { SignedUrls } from '../../platform/http/signed-urls.js';
import type { IconSource } from './icons/server-icon.entity.js';
import { formatQualifiedName, type QualifiedName } from './qualified-name.js';

/** Long enough for a page or a client that read the server this morning: a link opens for half of it at least. */
const LINK_SECONDS = 48 * 60 * 60;

/** What decides where a server's icon is. */
export interface IconOrigin {
  /** Set by its owner. */
  iconUrl: string | null;
  /** Of the icon kept here; null without one, or when it is too large to be kept. */
  iconSource: IconSource | null;
}

/** The absolute URLs we hand out for a server. */
@Injectable()
export class ServerUrlsService {
  constructor(
    private readonly links: SignedUrls,
    private readonly env: Env,
  ) {}

  /** An uploaded icon first, then the URL its owner set, then what the server itself brought. Needs no key, for a day at least. */
  icon(name: QualifiedName, { iconUrl, iconSource }: IconOrigin): string | null {
    if (iconSource === 'upload' || (iconSource !== null && iconUrl === null)) return this.uploadedIcon(name);
    return iconUrl;
  }

  uploadedIcon(name: QualifiedName): string {
    return this.links.sign(`${pathOf(name)}/icon`, LINK_SECONDS);
  }

  /** Where the bundle of the current stdio release is downloaded without a key, for a day at least. */
  bundle(name: QualifiedName): string {
    return this.links.sign(`${pathOf(name)}/download`, LINK_SECONDS);
  }

  /** The registry's own page of a server: its record. */
  record(name: QualifiedName): string {
    return `${this.env.baseUrl}${pathOf(name)}`;
  }

  /** The MCP address of a server's current release. */
  run(slug: string): string {
    return `${this.env.baseUrl}/run/${encodeURIComponent(slug)}`;
  }

  /** The host that run endpoints are reached at. */
  get runHost(): string {
    return new URL(this.env.baseUrl).hostname;
  }
}

/** The canonical path of a server, which is what a signature is about. */
function pathOf(name: QualifiedName): string {
  return `/servers/${encodeURIComponent(formatQualifiedName(name))}`;
}
