import { Controller, Get, Post } from '@nestjs/common';
import {
  CurrentPage,
  DomainError,
  Form,
  FramedPage,
  InvalidInputError,
  type NewFiles,
  type NewRelease,
  noticeOf,
  OwnNamespacesService,
  Page,
  type PageRequest,
  Redirect,
  type RejectedForm,
  Releases,
  respondToForm,
  Servers,
} from '../../extension.js';
import { AuthorPagesRepository } from './author-pages.repository.js';
import { OwnServersService } from './own-servers.service.js';
import { publishPage, type Source, toSource, VISIBILITIES, type Visibility } from './publish.page.js';

const MB = 1024 * 1024;

/** Parts of a form with a file or code: files as REST accepts them, and the code of a module as text. */
const PARTS = {
  fields: { server: 300, namespace: 100, name: 100, visibility: 20, configSchema: MB, note: 2_000, code: 130 * 1024 },
  files: { file: 25 * MB },
};

const DONE: Record<string, string> = { deleted: 'The server is deleted.' };

interface Publication {
  payload: NewRelease;
  files?: NewFiles;
}

/** `/ui/publish`: publishes a server, or a release of one. */
@Controller('ui/publish')
export class PublishPageController {
  constructor(
    private readonly authorPagesRepository: AuthorPagesRepository,
    private readonly ownServersService: OwnServersService,
    private readonly ownNamespacesService: OwnNamespacesService,
    private readonly releases: Releases,
    private readonly servers: Servers,
  ) {}

  @Get()
  @Page('servers:publish')
  show(@CurrentPage() page: PageRequest): Promise<FramedPage> {
    return this.render(page, toSource(page.query.source));
  }

  @Post('url')
  @Form('servers:publish')
  publishUrl(@CurrentPage() page: PageRequest) {
    return this.publish(page, 'url', () => ({
      payload: { type: 'external', upstreamUrl: page.form.get('url') ?? '' },
    }));
  }

  @Post('file')
  @Form('servers:publish', {}, PARTS)
  publishFile(@CurrentPage() page: PageRequest) {
    return this.publish(page, 'file', () => fileOf(page.files.file));
  }

  @Post('code')
  @Form('servers:publish', {}, PARTS)
  publishCode(@CurrentPage() page: PageRequest) {
    return this.publish(page, 'code', () => {
      const contents = page.form.get('code') ?? '';
      if (contents.trim() === '') throw new InvalidInputError('code must not be empty');
      return { payload: { type: 'hosted' }, files: { source: { path: 'server.ts', contents } } };
    });
  }

  private publish(page: PageRequest, source: Source, publicationOf: () => Publication) {
    const { form, person } = page;
    const work = async () => {
      const { payload, files } = publicationOf();
      const configSchema = toSchema(form.get('configSchema') ?? '');
      const commitMessage = form.get('note') ?? '';
      const release = {
        ...payload,
        ...(configSchema && { configSchema }),
        ...(commitMessage !== '' && { source: { commitMessage } }),
      };
      const name = form.get('server') || (await this.nameOf(page));
      const isNew = (await this.ownServersService.findNamed(person, name)) === null;
      if (isNew)
        await this.servers.create(person, name, { visibility: visibilityOf(form.get('visibility') ?? 'private') });
      try {
        const { deploymentId } = await this.releases.publish(person, name, release, files);
        const { slug } = await this.servers.find(person, name);
        return new Redirect(`ui/s/${encodeURIComponent(slug)}/releases/${deploymentId}`);
      } catch (error) {
        // A rejected form changes nothing.
        if (isNew) await this.servers.delete(person, name);
        throw atSource(error, source);
      }
    };
    return respondToForm(source, form, work, (rejected) => this.render(page, source, rejected));
  }

  /** Returns the qualified name of a new server, and claims its namespace if necessary. */
  private async nameOf({ form, person }: PageRequest): Promise<string> {
    const name = (form.get('name') ?? '').trim();
    if (!/^[a-zA-Z0-9][\w-]{2,38}$/.test(name)) {
      throw new InvalidInputError(
        'name must be 3 to 39 letters, digits, hyphens and underscores, a letter or digit first',
      );
    }
    return `${form.get('namespace') || (await this.ownNamespacesService.first(person))}/${name}`;
  }

  private async render(page: PageRequest, source: Source, rejected?: RejectedForm): Promise<FramedPage> {
    const { person, query, form } = page;
    const requested = rejected ? form.get('server') : query.server;
    const name = typeof requested === 'string' && requested !== '' ? requested : null;
    const server = name !== null && (await this.ownServersService.mayManage(person, name)) ? name : null;
    const namespaces = await this.authorPagesRepository.namespacesOf(this.ownServersService.accountsOf(person));
    const values = server === null ? {} : await this.valuesOf(page, server);
    const proposal = this.ownNamespacesService.proposalFor(person);
    return new FramedPage((token, root) => {
      const view = { token, address: `${root}ui/publish`, rejected, source, namespaces, proposal, server, values };
      return publishPage({ ...view, notice: noticeOf(query.done, DONE) ?? undefined });
    });
  }

  /** Returns the prefilled values of another release, from the newest one; no URL with a masked query. */
  private async valuesOf({ person }: PageRequest, server: string): Promise<{ url?: string; configSchema?: string }> {
    const { releases } = await this.releases.list(person, server, { page: 1, pageSize: 1 });
    const { connections } = await this.servers.detail(person, server);
    const url = releases[0]?.upstreamUrl ?? undefined;
    const schema = connections[0]?.configSchema ?? {};
    return {
      ...(url !== undefined && !url.includes('***') && { url }),
      ...(Object.keys(schema).length > 0 && { configSchema: JSON.stringify(schema, null, 2) }),
    };
  }
}

/** Assigns an error that names none of the other fields to the source. */
function atSource(error: unknown, source: Source): unknown {
  if (error instanceof DomainError && error.kind === 'invalid' && !/^configSchema\b/.test(error.message)) {
    error.field ??= source;
  }
  return error;
}

/** Reads an uploaded file: a ZIP archive is a bundle, any other file a module. */
function fileOf(file: Buffer | undefined): Publication {
  if (!file?.length) throw new InvalidInputError('file must be chosen, and not empty');
  const isBundle = file.subarray(0, 4).equals(Buffer.from('PK\u0003\u0004'));
  if (isBundle) return { payload: { type: 'stdio', runtime: 'node' }, files: { bundle: file } };
  return { payload: { type: 'hosted' }, files: { module: file } };
}

function toSchema(text: string): Record<string, unknown> | undefined {
  if (text.trim() === '') return undefined;
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch (error) {
    throw new InvalidInputError(`configSchema is not valid JSON: ${(error as Error).message}`);
  }
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new InvalidInputError('configSchema must be a JSON object');
  }
  return schema as Record<string, unknown>;
}

/** Returns the visibility of a form. @throws InvalidInputError for any other value */
export function visibilityOf(value: string | null): Visibility {
  const chosen = VISIBILITIES.find(([visibility]) => visibility === value);
  if (!chosen) throw new InvalidInputError('visibility must be one of private, restricted, public');
  return chosen[0];
}
