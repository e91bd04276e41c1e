#include "spawner.h"

#include <signal.h>

#include <utility>

namespace ringfence {
namespace {

class Lock {
 public:
  explicit Lock(uv_mutex_t* mutex) : mutex_(mutex) { uv_mutex_lock(mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { uv_mutex_unlock(mutex_); }

 private:
  uv_mutex_t* mutex_;
};

} // namespace

Spawner* Spawner::Of(Napi::Env env, OnDone on_done, Failure* failure) {
  void* data = nullptr;
  napi_get_instance_data(env, &data);
  if (data != nullptr) return static_cast<Spawner*>(data);
  Spawner* spawner = new Spawner(env, on_done);
  const int error = spawner->Start();
  if (error != 0) {
    *failure = {"pthread_create", error};
    delete spawner;
    return nullptr;
  }
  napi_set_instance_data(env, spawner, nullptr, nullptr);
  return spawner;
}

Spawner::Spawner(Napi::Env env, OnDone on_done) : env_(env), on_done_(on_done), context_(env, "RINGFENCESPAWNER") {
  uv_mutex_init(&mutex_);
  uv_cond_init(&more_);
}

Spawner::~Spawner() {
  uv_cond_destroy(&more_);
  uv_mutex_destroy(&mutex_);
}

// Returns an errno.
int Spawner::Start() {
  const int error = uv_thread_create(&thread_, [](void* spawner) { static_cast<Spawner*>(spawner)->Work(); }, this);
  if (error != 0) return -error;
  uv_loop_t* loop = nullptr;
  napi_get_uv_event_loop(env_, &loop);
  uv_async_init(loop, &done_, [](uv_async_t* handle) { static_cast<Spawner*>(handle->data)->Deliver(); });
  done_.data = this;
  uv_unref(reinterpret_cast<uv_handle_t*>(&done_));
  napi_add_async_cleanup_hook(
      env_, [](napi_async_cleanup_hook_handle, void* data) { static_cast<Spawner*>(data)->Stop(); }, this, &cleanup_hook_);
  return 0;
}

void Spawner::Add(Job job) {
  if (outstanding_++ == 0) uv_ref(reinterpret_cast<uv_handle_t*>(&done_));
  {
    const Lock lock(&mutex_);
    waiting_.push_back(std::move(job));
  }
  uv_cond_signal(&more_);
}

// The thread.
void Spawner::Work() {
  // Signals are for the threads that were there. Of one thread it is sigprocmask that changes the mask, whatever POSIX says.
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  for (;;) {
    Job job;
    {
      const Lock lock(&mutex_);
      while (!stopping_ && waiting_.empty()) uv_cond_wait(&more_, &mutex_);
      if (stopping_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    job->started_at = uv_hrtime();
    job->started = Spawn(job->launcher.c_str(), job->plan.data(), job->plan.size(), &job->spawned, &job->failure);
    if (!job->with_stdin) job->spawned.guest_stdin.reset();
    const Lock lock(&mutex_);
    finished_.push_back(std::move(job));
    uv_async_send(&done_);
  }
}

void Spawner::Deliver() {
  std::list<Job> jobs;
  {
    const Lock lock(&mutex_);
    jobs.swap(finished_);
  }
  for (Job& job : jobs) {
    if (--outstanding_ == 0) uv_unref(reinterpret_cast<uv_handle_t*>(&done_));
    const Napi::HandleScope handles(env_);
    const Napi::CallbackScope scope(env_, context_);
    on_done_(env_, job.get());
    job.reset(); // before JavaScript hears of it, which it does at the end of the scope
  }
}

// The environment ends. A launcher that nobody heard of reads the end of its lifeline and goes.
void Spawner::Stop() {
  {
    const Lock lock(&mutex_);
    stopping_ = true;
  }
  uv_cond_signal(&more_);
  uv_thread_join(&thread_);
  for (const Job& job : finished_) {
    job->spawned.control.reset();
    if (job->started) ReapSoon(job->spawned.pidfd);
  }
  finished_.clear();
  waiting_.clear();
  napi_set_instance_data(env_, nullptr, nullptr, nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&done_), [](uv_handle_t* handle) {
    Spawner* spawner = static_cast<Spawner*>(handle->data);
    const napi_async_cleanup_hook_handle hook = spawner->cleanup_hook_;
    delete spawner;
    napi_remove_async_cleanup_hook(hook);
  });
}

} // namespace ringfence
