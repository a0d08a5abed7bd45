import { Controller, Get, Post } from '@nestjs/common';
import {
  CurrentPage,
  Env,
  Form,
  FramedPage,
  InvalidInputError,
  noticeOf,
  Page,
  type PageRequest,
  Redirect,
  type RejectedForm,
  respondToForm,
  Servers,
} from '../../extension.js';
import { OwnServersService } from './own-servers.service.js';
import { visibilityOf } from './publish.controller.js';
import { settingsPage } from './server-settings.page.js';

const DONE: Record<string, string> = {
  saved: 'The settings are saved.',
  'secret-saved': 'The secret is saved. Programs that start from now on read it.',
  'secret-shared': 'The secret is saved. The server is public: every account calls it with this secret.',
  'secret-deleted': 'The secret is deleted.',
};

type ServerRequest = PageRequest<{ slug: string }>;

/** `/ui/s/{slug}/settings`: the settings of a server, for those who manage it. */
@Controller('ui/s/:slug/settings')
export class ServerSettingsPageController {
  constructor(
    private readonly env: Env,
    private readonly ownServersService: OwnServersService,
    private readonly servers: Servers,
  ) {}

  @Get()
  @Page('servers:write')
  show(@CurrentPage() page: ServerRequest): Promise<FramedPage> {
    return this.render(page);
  }

  @Post('visibility')
  @Form('servers:write')
  setVisibility(@CurrentPage() page: ServerRequest) {
    return this.change(page, 'visibility', async (name, form) => {
      const visibility = visibilityOf(form.get('visibility'));
      await this.servers.update(page.person, name, {
        visibility,
        ...(visibility === 'public' && form.get('confirmSecrets') === 'true' && { confirmSecrets: true }),
      });
      return 'saved';
    });
  }

  @Post('texts')
  @Form('servers:write')
  setTexts(@CurrentPage() page: ServerRequest) {
    return this.change(page, 'texts', async (name, form) => {
      const [displayName, description] = [form.get('displayName') ?? '', form.get('description') ?? ''];
      await this.servers.update(page.person, name, { displayName, description, iconUrl: form.get('iconUrl') || null });
      return 'saved';
    });
  }

  @Post('secret')
  @Form('servers:write')
  setSecret(@CurrentPage() page: ServerRequest) {
    return this.change(page, 'secret', async (name, form) => {
      const secret = { name: form.get('name') ?? '', value: form.get('value') ?? '' };
      const { warning } = await this.servers.setSecret(page.person, name, secret);
      return warning === null ? 'secret-saved' : 'secret-shared';
    });
  }

  @Post('secret-delete')
  @Form('servers:write')
  deleteSecret(@CurrentPage() page: ServerRequest) {
    return this.change(page, 'secret-delete', async (name, form) => {
      await this.servers.deleteSecret(page.person, name, form.get('id') ?? '');
      return 'secret-deleted';
    });
  }

  @Post('runtime')
  @Form('servers:write')
  setRuntime(@CurrentPage() page: ServerRequest) {
    return this.change(page, 'runtime', async (name, form) => {
      const hosts = (form.get('egressAllow') ?? '').split(/\s+/).filter((host) => host !== '');
      await this.servers.updateRuntime(page.person, name, {
        egressAllow: hosts.length > 0 ? hosts : null,
        logPayloads: form.get('logPayloads') === 'true',
      });
      return 'saved';
    });
  }

  /** Deletes the server if its name was entered. */
  @Post('delete')
  @Form('servers:write')
  delete(@CurrentPage() page: ServerRequest) {
    return this.change(page, 'delete', async (name, form) => {
      if ((form.get('confirm') ?? '').trim() !== name) throw new InvalidInputError(`confirm must be ${name}`);
      await this.servers.delete(page.person, name);
      return new Redirect('ui/publish?done=deleted');
    });
  }

  /** @param work returns a key of {@link DONE} */
  private change(
    page: ServerRequest,
    name: string,
    work: (server: string, form: URLSearchParams) => Promise<string | Redirect>,
  ) {
    const { params, person, form } = page;
    const run = async () => {
      const server = await this.ownServersService.openToManage(person, params.slug);
      const done = await work(server.name, form);
      return typeof done === 'string'
        ? new Redirect(`ui/s/${encodeURIComponent(params.slug)}/settings?done=${done}`)
        : done;
    };
    return respondToForm(`settings/${name}`, form, run, (rejected) => this.render(page, rejected));
  }

  private async render({ person, params, query }: ServerRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const server = await this.ownServersService.openToManage(person, params.slug);
    const secrets = await this.servers.secrets(person, server.name);
    const runtime = await this.servers.runtime(person, server.name);
    const { baseUrl } = this.env;
    return new FramedPage((token, root) => {
      const address = `${root}ui/s/${encodeURIComponent(params.slug)}`;
      const notice = rejected ? null : noticeOf(query.done, DONE);
      return settingsPage({ token, address, rejected, server, baseUrl, secrets, runtime, notice });
    });
  }
}
