import { Controller, Get, Post } from '@nestjs/common';
import {
  CurrentPage,
  Form,
  FramedPage,
  noticeOf,
  Page,
  type PageRequest,
  Redirect,
  type RejectedForm,
  Releases,
  respondToForm,
} from '../../extension.js';
import { OwnServersService } from './own-servers.service.js';
import { releasePage, releasesPage } from './releases.page.js';

const DONE: Record<string, string> = { 'rolled-back': 'Calls reach this release again.' };

type ServerRequest = PageRequest<{ slug: string; id: string }>;

/** `/ui/s/{slug}/releases`: the releases of a server for its authors. */
@Controller('ui/s/:slug/releases')
export class ReleasePagesController {
  constructor(
    private readonly ownServersService: OwnServersService,
    private readonly releases: Releases,
  ) {}

  @Get()
  @Page('servers:read')
  list(@CurrentPage() page: ServerRequest): Promise<FramedPage> {
    return this.renderList(page);
  }

  @Get(':id')
  @Page('servers:read')
  show(@CurrentPage() page: ServerRequest): Promise<FramedPage> {
    return this.renderRelease(page, page.params.id);
  }

  /** Makes an earlier release current again. */
  @Post('roll-back')
  @Form('servers:publish')
  rollBack(@CurrentPage() page: ServerRequest) {
    return this.change(page, 'roll-back', async (name, id) => {
      await this.releases.rollBack(page.person, name, id);
      return '?done=rolled-back';
    });
  }

  /** Resumes a release that nobody authorized in time. */
  @Post('resume')
  @Form('servers:publish')
  resume(@CurrentPage() page: ServerRequest) {
    return this.change(page, 'resume', async (name, id) => {
      await this.releases.resume(page.person, name, id);
      return '';
    });
  }

  private change(page: ServerRequest, verb: string, work: (name: string, id: string) => Promise<string>) {
    const { form, params, person } = page;
    const id = form.get('id') ?? '';
    const run = async () => {
      const { name } = await this.ownServersService.open(person, params.slug);
      const query = await work(name, id);
      return new Redirect(`ui/s/${encodeURIComponent(params.slug)}/releases/${encodeURIComponent(id)}${query}`);
    };
    return respondToForm(`releases/${verb}`, form, run, (rejected) => this.renderList(page, rejected));
  }

  private async renderList(page: ServerRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const { person, params, query } = page;
    const server = await this.ownServersService.open(person, params.slug);
    const number = Number(query.page);
    const current = Number.isInteger(number) && number > 0 && number < 1e6 ? number : 1;
    const releases = await this.releases.list(person, server.name, { page: current, pageSize: 20 });
    return new FramedPage((token, root) => {
      const address = `${root}ui/s/${encodeURIComponent(params.slug)}`;
      return releasesPage({ token, address, rejected, server, notice: null }, releases);
    });
  }

  private async renderRelease({ person, params, query }: ServerRequest, id: string): Promise<FramedPage> {
    const server = await this.ownServersService.open(person, params.slug);
    const release = await this.releases.get(person, server.name, id);

    const notice = noticeOf(query.done, DONE);
    return new FramedPage((token, root) => {
      const address = `${root}ui/s/${encodeURIComponent(params.slug)}`;
      return releasePage({ token, address, server, notice }, release, query.follow !== '0');
    });
  }
}
